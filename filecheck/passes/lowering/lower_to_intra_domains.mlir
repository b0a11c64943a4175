// RUN: gnn-opt %s -p lower-to-intra --split-input-file | filecheck %s

// A value on pairs is computed once a pair; its keys are found by index maps of the pairs.
// CHECK: func.func @forward()
// CHECK-DAG: %[[SRC:.*]] = intra.index_map {domain = #intra.domain<g[rel, src]>, path = "src"}
// CHECK-DAG: %[[REL:.*]] = intra.index_map {domain = #intra.domain<g[rel, src]>, path = "rel"}
// CHECK-DAG: %[[PAIR:.*]] = intra.pair_index {domain = #intra.domain<g[rel, src]>}
// CHECK-DAG: %[[H:.*]] = intra.alloc {domain = #intra.domain<g[rel, src]>} : memref<?x2xf32>
// CHECK: intra.traverse %[[J:.*]] in
// CHECK-NEXT: intra.lookup %[[REL]][%[[J]]]
// CHECK-NEXT: intra.lookup %[[SRC]][%[[J]]]
// CHECK: intra.matmul
// CHECK-NEXT: intra.store {{.*}}, %[[H]][%[[J]]]
// An edge finds its pair.
// CHECK: intra.segment
// CHECK-NEXT: %[[E:.*]] = intra.lookup
// CHECK-NEXT: %[[K:.*]] = intra.lookup %[[PAIR]][%[[E]]]
// CHECK-NEXT: intra.load %[[H]][%[[K]]]
func.func @forward(%N : !inter.set<N>, %R : !inter.set<R>, %g : !inter.set<g, src: N, dst: N, rel: R, pairs (rel, src)>, %x : !inter.rows<N, 3xf32>, %W : !inter.rows<R, 3x2xf32>) -> !inter.rows<N, 2xf32> {
  %s = inter.at %g[src], %x : !inter.rows<g[src], 3xf32>
  %w = inter.at %g[rel], %W : !inter.rows<g[rel], 3x2xf32>
  %h = inter.contract "k,kf->f" %s, %w : !inter.rows<g[rel, src], 2xf32>
  %y = inter.reduce sum %h over %g along dst : !inter.rows<N, 2xf32>
  func.return %y : !inter.rows<N, 2xf32>
}

// -----

// The order of `along` is that of the stored pairs, whatever the program says.
// CHECK: intra.size {domain = #intra.domain<g[dst, rel]>}
// CHECK: intra.offsets {domain = #intra.domain<g>, along = ["dst", "rel"]}
// CHECK-NOT: ["rel", "dst"]
func.func @forward(%N : !inter.set<N>, %R : !inter.set<R>, %g : !inter.set<g, src: N, dst: N, rel: R, pairs (dst, rel)>, %e : !inter.rows<g, f32>) -> !inter.rows<g[dst, rel], f32> {
  %y = inter.reduce max %e over %g along (rel, dst) : !inter.rows<g[dst, rel], f32>
  func.return %y : !inter.rows<g[dst, rel], f32>
}

// -----

// A reduction over a node's rows along the same node is the row itself.
// CHECK: func.func @forward()
// CHECK-NOT: intra.segment
// CHECK: intra.traverse %[[I:.*]] in
// CHECK-NEXT: %[[V:.*]] = intra.load %{{.*}}[%[[I]]]
// CHECK-NEXT: intra.store %[[V]]
func.func @forward(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, f32>) -> !inter.rows<N, f32> {
  %s = inter.at %g[src], %x : !inter.rows<g[src], f32>
  %y = inter.reduce sum %s over %g[src] along src : !inter.rows<N, f32>
  func.return %y : !inter.rows<N, f32>
}

// -----

// A class that no key determines is read at a witness: some row of the set that has it.
// CHECK: func.func @forward()
// CHECK-DAG: %[[WITNESS:.*]] = intra.witness {domain = #intra.domain<g>, along = ["src.batch", "src.tag"]}
// CHECK-DAG: %[[SRC:.*]] = intra.index_map {domain = #intra.domain<g>, path = "src"}
// CHECK-DAG: %[[PAIR:.*]] = intra.pair_index {domain = #intra.domain<N[batch, tag]>}
// CHECK: intra.traverse %[[J:.*]] in
// CHECK-NEXT: %[[E:.*]] = intra.lookup %[[WITNESS]][%[[J]]]
// CHECK-NEXT: %[[NODE:.*]] = intra.lookup %[[SRC]][%[[E]]]
// CHECK-NEXT: intra.lookup %[[PAIR]][%[[NODE]]]
func.func @forward(%T : !inter.set<T>, %B : !inter.set<B>, %N : !inter.set<N, tag: T, batch: B, pairs (batch, tag)>, %g : !inter.set<g, src: N, dst: N, pairs (src.batch, src.tag)>, %q : !inter.rows<N[batch, tag], f32>) -> !inter.rows<g[src.batch, src.tag], f32> {
  %y = inter.at %g[src], %q : !inter.rows<g[src.batch, src.tag], f32>
  func.return %y : !inter.rows<g[src.batch, src.tag], f32>
}
