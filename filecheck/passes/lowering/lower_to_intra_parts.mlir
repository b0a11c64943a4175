// RUN: gnn-opt %s -p lower-to-intra --split-input-file | filecheck %s

// A union is one buffer; each part is written by a nest over the part, the second one further on.
// CHECK: func.func @forward()
// CHECK: %[[FIRST:.*]] = intra.part %[[U:.*]] : memref<?xf32>
// CHECK: %[[NA:.*]] = intra.size {domain = #intra.domain<a>} : index
// CHECK: %[[SECOND:.*]] = intra.part %[[U]], %[[NA]] : memref<?xf32>
// CHECK: intra.traverse %[[I:.*]] in %[[NA]] {
// CHECK: intra.store {{.*}}, %[[FIRST]][%[[I]]]
// CHECK: intra.traverse %[[J:.*]] in
// CHECK: intra.store {{.*}}, %[[SECOND]][%[[J]]]
func.func @prepare(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>) -> (!inter.set<a, src: N, dst: N, parent: g mono> {inter.name = "a"}, !inter.set<l, src: N mono onto, dst: N mono onto> {inter.name = "l"}, !inter.set<u, src: N onto, dst: N onto, parts a l> {inter.name = "u"}) {
  %a = inter.filter %g {no_loops} : !inter.set<a, src: N, dst: N, parent: g mono>
  %l = inter.loops %g : !inter.set<l, src: N mono onto, dst: N mono onto>
  %u = inter.union %a, %l : !inter.set<u, src: N onto, dst: N onto, parts a l>
  func.return %a, %l, %u : !inter.set<a, src: N, dst: N, parent: g mono>, !inter.set<l, src: N mono onto, dst: N mono onto>, !inter.set<u, src: N onto, dst: N onto, parts a l>
}
func.func @forward(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %a : !inter.set<a, src: N, dst: N, parent: g mono>, %l : !inter.set<l, src: N mono onto, dst: N mono onto>, %u : !inter.set<u, src: N onto, dst: N onto, parts a l>, %x : !inter.rows<a, f32>, %y : !inter.rows<l, f32>) -> !inter.rows<u, f32> {
  %s = inter.stack %u, %x, %y : !inter.rows<u, f32>
  %z = inter.neg %s : !inter.rows<u, f32>
  func.return %z : !inter.rows<u, f32>
}

// -----

// A partial map is read with a value for the rows where it leads nowhere.
// CHECK: func.func @forward()
// CHECK: %[[OLD:.*]] = intra.index_map {domain = #intra.domain<l>, path = "old"}
// CHECK: intra.traverse %[[I:.*]] in
// CHECK: %[[E:.*]] = intra.lookup %[[OLD]][%[[I]]] : index
// CHECK-NEXT: %[[ONE:.*]] = intra.const {value = 1.000000e+00 : f64} : f32
// CHECK-NEXT: intra.load %{{.*}}[%[[E]]] else %[[ONE]] : f32
func.func @forward(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %l : !inter.set<l, src: N mono onto, dst: N mono onto, old: g partial>, %w : !inter.rows<g, f32>) -> !inter.rows<l, f32> {
  %one = inter.const 1.0 : !inter.rows<unit, f32>
  %y = inter.at %l[old], %w else %one : !inter.rows<l, f32>
  func.return %y : !inter.rows<l, f32>
}

// -----

// The single row of 3 x 8 numbers is three rows of 8 in the same memory, and back.
// CHECK: func.func @forward()
// CHECK: %[[W:.*]] = intra.input {buffer = "w"} : memref<?x3x8xf32>
// CHECK: intra.view %[[W]] {domain = #intra.domain<R>} : memref<?x8xf32>
// CHECK: intra.view %{{.*}} : memref<?x3x8xf32>
func.func @forward(%R : !inter.set<R>, %w : !inter.rows<unit, 3x8xf32>) -> !inter.rows<unit, 3x8xf32> {
  %v = inter.as_rows %R, %w : !inter.rows<R, 8xf32>
  %t = inter.exp %v : !inter.rows<R, 8xf32>
  %y = inter.as_unit %R, %t {n = 3} : !inter.rows<unit, 3x8xf32>
  func.return %y : !inter.rows<unit, 3x8xf32>
}
