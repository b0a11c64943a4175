// RUN: gnn-opt %s -p split-unions,canonicalize,cse,dce-sets,verify-sets --split-input-file | filecheck %s

// A maximum over local and remote edges is the greater of both; a part in which a row has no edge
// is left out.
// CHECK-LABEL: func.func @max(
// CHECK-NOT: inter.union
// CHECK: %[[L:.*]] = inter.at %l[src], %x
// CHECK: %[[M:.*]] = inter.reduce max %[[L]] over %l along dst : !inter.rows<N, f32>
// CHECK-NEXT: %[[R:.*]] = inter.reduce max %{{.*}} over %r along dst : !inter.rows<N, f32>
// CHECK-NEXT: %[[NL:.*]] = inter.count over %l along dst : !inter.rows<N, f32>
// CHECK-NEXT: %[[NR:.*]] = inter.count over %r along dst : !inter.rows<N, f32>
// CHECK: %[[BOTH:.*]] = inter.maximum %[[M]], %[[R]] : !inter.rows<N, f32>
// CHECK: inter.gt %[[NR]]
// CHECK-NEXT: inter.where %{{.*}}, %[[BOTH]], %[[M]] : !inter.rows<N, f32>
// CHECK: inter.gt %[[NL]]
// CHECK-NEXT: inter.where %{{.*}}, %{{.*}}, %[[R]] : !inter.rows<N, f32>
func.func @max(%P : !inter.set<P>, %K : !inter.set<K, peer: P mono>, %N : !inter.set<N, rank: K>, %H : !inter.set<H, rank: K, peer: P>, %l : !inter.set<l, src: N, dst: N>, %r : !inter.set<r, src: H, dst: N>, %x : !inter.rows<N, f32>, %y : !inter.rows<H, f32>) -> !inter.rows<N, f32> {
  %u = inter.union %l, %r : !inter.set<u, dst: N, parts l r>
  %a = inter.at %l[src], %x : !inter.rows<l, f32>
  %b = inter.at %r[src], %y : !inter.rows<r, f32>
  %e = inter.stack %u, %a, %b : !inter.rows<u, f32>
  %m = inter.reduce max %e over %u along dst : !inter.rows<N, f32>
  func.return %m : !inter.rows<N, f32>
}

// -----

// What works row by row is done for each part, and a part of it is that of one.
// CHECK-LABEL: func.func @rows(
// CHECK-NOT: inter.stack
// CHECK-NOT: inter.part
// CHECK: %[[A:.*]] = inter.exp %a : !inter.rows<l, f32>
// CHECK: inter.reduce sum %[[A]] over %l along dst
// CHECK: inter.reduce sum %{{.*}} over %r along dst
// CHECK: inter.add
// CHECK: inter.mul %[[A]], %{{.*}} : !inter.rows<l, f32>
func.func @rows(%P : !inter.set<P>, %K : !inter.set<K, peer: P mono>, %N : !inter.set<N, rank: K>, %H : !inter.set<H, rank: K, peer: P>, %l : !inter.set<l, src: N, dst: N>, %r : !inter.set<r, src: H, dst: N>, %a : !inter.rows<l, f32>, %b : !inter.rows<r, f32>) -> !inter.rows<l, f32> {
  %u = inter.union %l, %r : !inter.set<u, dst: N, parts l r>
  %e = inter.stack %u, %a, %b : !inter.rows<u, f32>
  %p = inter.exp %e : !inter.rows<u, f32>
  %s = inter.reduce sum %p over %u along dst : !inter.rows<N, f32>
  %t = inter.at %u[dst], %s : !inter.rows<u[dst], f32>
  %q = inter.mul %p, %t : !inter.rows<u, f32>
  %o = inter.part 0 of %u, %q : !inter.rows<l, f32>
  func.return %o : !inter.rows<l, f32>
}

// -----

// A union of edges between rows at hand stays, and one that an op needs whole.
// CHECK-LABEL: func.func @stay(
// CHECK: %u = inter.union %f, %l
// CHECK: %v = inter.union %l, %r
func.func @stay(%P : !inter.set<P>, %K : !inter.set<K, peer: P mono>, %N : !inter.set<N, rank: K>, %H : !inter.set<H, rank: K, peer: P>, %l : !inter.set<l, src: N, dst: N>, %f : !inter.set<f, src: N, dst: N>, %r : !inter.set<r, src: H, dst: N>, %a : !inter.rows<l, f32>, %b : !inter.rows<r, f32>, %c : !inter.rows<f, f32>) -> (!inter.rows<N, f32>, !inter.rows<N, f32>) {
  %u = inter.union %f, %l : !inter.set<u, src: N, dst: N, parts f l>
  %d = inter.stack %u, %c, %a : !inter.rows<u, f32>
  %m = inter.reduce max %d over %u along dst : !inter.rows<N, f32>
  %v = inter.union %l, %r : !inter.set<v, dst: N, parts l r>
  %e = inter.stack %v, %a, %b : !inter.rows<v, f32>
  %w = inter.reduce last %e over %v along dst else %m : !inter.rows<N, f32>
  func.return %m, %w : !inter.rows<N, f32>, !inter.rows<N, f32>
}

// -----

// Of rows that an argument gives for the union, parts are taken.
// CHECK-LABEL: func.func @given(
// CHECK: %u = inter.union %l, %r
// CHECK: %[[A:.*]] = inter.part 0 of %u, %d
// CHECK: inter.neg %[[A]] : !inter.rows<l, f32>
// CHECK: inter.reduce sum %{{.*}} over %l along dst
func.func @given(%P : !inter.set<P>, %K : !inter.set<K, peer: P mono>, %N : !inter.set<N, rank: K>, %H : !inter.set<H, rank: K, peer: P>, %l : !inter.set<l, src: N, dst: N>, %r : !inter.set<r, src: H, dst: N>, %d : !inter.rows<u, f32>) -> !inter.rows<N, f32> {
  %u = inter.union %l, %r : !inter.set<u, dst: N, parts l r>
  %e = inter.neg %d : !inter.rows<u, f32>
  %s = inter.reduce sum %e over %u along dst : !inter.rows<N, f32>
  func.return %s : !inter.rows<N, f32>
}
