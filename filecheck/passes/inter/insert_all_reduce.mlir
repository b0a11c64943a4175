// RUN: gnn-opt %s -p insert-all-reduce,verify-sets --split-input-file | filecheck %s

// A sum over the rows of all ranks is that of each rank, added up; one by owned rows stays.
// CHECK-LABEL: func.func @sums(
// CHECK: %[[S:.*]] = inter.reduce sum %{{.*}} over %N along () : !inter.rows<unit, 4xf32>
// CHECK-NEXT: inter.all_reduce sum %[[S]] : !inter.rows<unit, 4xf32>
// CHECK-NEXT: inter.reduce sum %{{.*}} over %g along dst : !inter.rows<N, 4xf32>
// CHECK-NEXT: func.return
func.func @sums(%P : !inter.set<P>, %K : !inter.set<K, peer: P mono>, %N : !inter.set<N, rank: K>, %g : !inter.set<g, dst: N>, %x : !inter.rows<N, 4xf32>, %m : !inter.rows<g, 4xf32>) -> (!inter.rows<unit, 4xf32>, !inter.rows<N, 4xf32>) {
  %s = inter.reduce sum %x over %N along () : !inter.rows<unit, 4xf32>
  %y = inter.reduce sum %m over %g along dst : !inter.rows<N, 4xf32>
  func.return %s, %y : !inter.rows<unit, 4xf32>, !inter.rows<N, 4xf32>
}

// -----

// A mean over the rows of a relation, a set that all ranks have: its sum and count are added up.
// CHECK-LABEL: func.func @mean(
// CHECK: inter.reduce sum %{{.*}} over %g along rel : !inter.rows<R, 4xf32>
// CHECK-NEXT: inter.all_reduce sum %{{.*}} : !inter.rows<R, 4xf32>
// CHECK-NEXT: inter.count over %g along rel : !inter.rows<R, f32>
// CHECK-NEXT: inter.all_reduce sum %{{.*}} : !inter.rows<R, f32>
// CHECK: inter.div
func.func @mean(%P : !inter.set<P>, %K : !inter.set<K, peer: P mono>, %N : !inter.set<N, rank: K>, %R : !inter.set<R>, %g : !inter.set<g, dst: N, rel: R>, %m : !inter.rows<g, 4xf32>) -> !inter.rows<R, 4xf32> {
  %y = inter.reduce mean %m over %g along rel : !inter.rows<R, 4xf32>
  func.return %y : !inter.rows<R, 4xf32>
}

// -----

// Where a rank has no row, others decide; where none has one, it is 0.
// CHECK-LABEL: func.func @max(
// CHECK: %[[N:.*]] = inter.count over %N along () : !inter.rows<unit, f32>
// CHECK: %[[M:.*]] = inter.reduce max %x over %N along () : !inter.rows<unit, f32>
// CHECK: %[[W:.*]] = inter.where %{{.*}}, %[[M]], %{{.*}} : !inter.rows<unit, f32>
// CHECK-NEXT: %[[A:.*]] = inter.all_reduce max %[[W]] : !inter.rows<unit, f32>
// CHECK-NEXT: inter.all_reduce max %[[N]] : !inter.rows<unit, f32>
// CHECK: inter.where %{{.*}}, %[[A]], %{{.*}} : !inter.rows<unit, f32>
func.func @max(%P : !inter.set<P>, %K : !inter.set<K, peer: P mono>, %N : !inter.set<N, rank: K>, %x : !inter.rows<N, f32>) -> !inter.rows<unit, f32> {
  %y = inter.reduce max %x over %N along () : !inter.rows<unit, f32>
  func.return %y : !inter.rows<unit, f32>
}

// -----

// How many rows all ranks have together.
// CHECK-LABEL: func.func @size(
// CHECK: %[[N:.*]] = inter.size %N : !inter.rows<unit, i64>
// CHECK-NEXT: inter.all_reduce sum %[[N]] : !inter.rows<unit, i64>
func.func @size(%P : !inter.set<P>, %K : !inter.set<K, peer: P mono>, %N : !inter.set<N, rank: K>) -> !inter.rows<unit, i64> {
  %n = inter.size %N : !inter.rows<unit, i64>
  func.return %n : !inter.rows<unit, i64>
}

// -----

// Without ranks nothing changes.
// CHECK-LABEL: func.func @alone(
// CHECK-NEXT: inter.reduce mean
// CHECK-NEXT: func.return
func.func @alone(%N : !inter.set<N>, %x : !inter.rows<N, f32>) -> !inter.rows<unit, f32> {
  %y = inter.reduce mean %x over %N along () : !inter.rows<unit, f32>
  func.return %y : !inter.rows<unit, f32>
}

// -----

// Sums of own rows and of ghosts that are added cross as one.
// CHECK-LABEL: func.func @added(
// CHECK: %[[S:.*]] = inter.add
// CHECK-NEXT: inter.all_reduce sum %[[S]] : !inter.rows<unit, 4xf32>
// CHECK-NOT: inter.all_reduce
func.func @added(%K : !inter.set<K>, %N : !inter.set<N, rank: K>, %H : !inter.set<H, rank: K>, %x : !inter.rows<N, 4xf32>, %y : !inter.rows<H, 4xf32>) -> !inter.rows<unit, 4xf32> {
  %a = inter.reduce sum %x over %N along () : !inter.rows<unit, 4xf32>
  %b = inter.reduce sum %y over %H along () : !inter.rows<unit, 4xf32>
  %c = inter.add %a, %b : !inter.rows<unit, 4xf32>
  func.return %c : !inter.rows<unit, 4xf32>
}
