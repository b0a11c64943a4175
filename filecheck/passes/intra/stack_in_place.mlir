// RUN: gnn-opt %s -p lower-to-intra,stack-in-place --split-input-file | filecheck %s

// What is stacked is computed in its part of the stack; an input, which lies elsewhere, is copied.
// CHECK: func.func @forward()
// CHECK: %[[Y:.*]] = intra.input {buffer = "y"
// CHECK: %[[P:.*]] = intra.part %[[U:.*]] : memref<?xf32>
// CHECK: %[[Q:.*]] = intra.part %[[U]], %{{.*}} : memref<?xf32>
// CHECK: intra.traverse
// CHECK: %[[E:.*]] = intra.apply %{{.*}} {fn = "exp"}
// CHECK-NEXT: intra.store %[[E]], %[[P]][
// CHECK: intra.traverse
// CHECK: %[[L:.*]] = intra.load %[[Y]][
// CHECK-NEXT: intra.store %[[L]], %[[Q]][
// CHECK-NOT: intra.store %{{.*}}, %[[P]][
// CHECK: intra.load %[[P]][
func.func @forward(%a : !inter.set<a>, %l : !inter.set<l>, %u : !inter.set<u, parts a l>, %x : !inter.rows<a, f32>, %y : !inter.rows<l, f32>) -> (!inter.rows<u, f32>, !inter.rows<a, f32>) {
  %e = inter.exp %x : !inter.rows<a, f32>
  %s = inter.stack %u, %e, %y : !inter.rows<u, f32>
  %z = inter.neg %s : !inter.rows<u, f32>
  %r = inter.sqrt %e : !inter.rows<a, f32>
  func.return %z, %r : !inter.rows<u, f32>, !inter.rows<a, f32>
}

// -----

// Rows that are stacked twice lie in the first stack, and are copied to the second.
// CHECK: func.func @forward()
// CHECK: %[[P:.*]] = intra.part %[[U:.*]] : memref<?xf32>
// CHECK: %[[V:.*]] = intra.alloc {domain = #intra.domain<v>}
// CHECK: %[[Q:.*]] = intra.part %[[V]], %{{.*}} : memref<?xf32>
// CHECK: %[[E:.*]] = intra.apply %{{.*}} {fn = "exp"}
// CHECK-NEXT: intra.store %[[E]], %[[P]][
// CHECK: %[[L:.*]] = intra.load %[[P]][
// CHECK-NEXT: intra.store %[[L]], %[[Q]][
func.func @forward(%a : !inter.set<a>, %l : !inter.set<l>, %u : !inter.set<u, parts a l>, %v : !inter.set<v, parts l a>, %x : !inter.rows<a, f32>, %y : !inter.rows<l, f32>) -> (!inter.rows<u, f32>, !inter.rows<v, f32>) {
  %e = inter.exp %x : !inter.rows<a, f32>
  %s = inter.stack %u, %e, %y : !inter.rows<u, f32>
  %t = inter.stack %v, %y, %e : !inter.rows<v, f32>
  %z = inter.neg %s : !inter.rows<u, f32>
  %w = inter.neg %t : !inter.rows<v, f32>
  func.return %z, %w : !inter.rows<u, f32>, !inter.rows<v, f32>
}
