// RUN: gnn-opt %s -p global-rows,verify-sets --split-input-file | filecheck %s

// What hashes or numbers rows takes the numbers of the whole graph; R is not cut.
// CHECK-LABEL: func.func @numbers
// CHECK-NEXT: %a = inter.dropout %x, %key over %N as %i {p = 0.5, site = 0} : !inter.rows<N, 4xf32>
// CHECK-NEXT: %b = inter.dropout %x, %key over %N as %own {p = 0.5, site = 1} : !inter.rows<N, 4xf32>
// CHECK-NEXT: %d = inter.at %g[src], %i : !inter.rows<g[src], i64>
// CHECK-NEXT: %[[NONE:.*]] = inter.const -1 : !inter.rows<unit, i64>
// CHECK-NEXT: %o = inter.at %l[old], %j else %[[NONE]] : !inter.rows<l, i64>
// CHECK-NEXT: %r = inter.index %g[rel] : !inter.rows<g, i64>
// CHECK-NEXT: %q = inter.iota %R : !inter.rows<R, i64>
// CHECK-NEXT: func.return %i, %d, %o, %r, %q
func.func @numbers(%N : !inter.set<N>, %R : !inter.set<R>, %g : !inter.set<g, src: N, dst: N, rel: R>, %l : !inter.set<l, old: g partial>, %i : !inter.rows<N, i64> {inter.global_rows}, %j : !inter.rows<g, i64> {inter.global_rows}, %own : !inter.rows<N, i64>, %x : !inter.rows<N, 4xf32>, %key : !inter.rows<unit, i64>) -> (!inter.rows<N, i64>, !inter.rows<g[src], i64>, !inter.rows<l, i64>, !inter.rows<g, i64>, !inter.rows<R, i64>) {
  %a = inter.dropout %x, %key over %N {p = 0.5, site = 0} : !inter.rows<N, 4xf32>
  %b = inter.dropout %x, %key over %N as %own {p = 0.5, site = 1} : !inter.rows<N, 4xf32>
  %c = inter.iota %N : !inter.rows<N, i64>
  %d = inter.index %g[src] : !inter.rows<g[src], i64>
  %o = inter.index %l[old] : !inter.rows<l, i64>
  %r = inter.index %g[rel] : !inter.rows<g, i64>
  %q = inter.iota %R : !inter.rows<R, i64>
  func.return %c, %d, %o, %r, %q : !inter.rows<N, i64>, !inter.rows<g[src], i64>, !inter.rows<l, i64>, !inter.rows<g, i64>, !inter.rows<R, i64>
}

// -----

// What counts rows takes the counts of the whole graph, a mean sums its share. Edges are all at
// their destination: nobody says otherwise. What is over pairs is no count of the edges.
// CHECK-LABEL: func.func @counts
// CHECK-NEXT: %[[M:.*]] = inter.reduce sum %x over %g along src : !inter.rows<N, 4xf32>
// CHECK-NEXT: %[[C:.*]] = inter.cast %c : !inter.rows<N, f32>
// CHECK-NEXT: %[[ONE:.*]] = inter.const 1.0 : !inter.rows<unit, f32>
// CHECK-NEXT: %[[MAX:.*]] = inter.maximum %[[C]], %[[ONE]] : !inter.rows<N, f32>
// CHECK-NEXT: %[[COLUMN:.*]] = inter.reshape %[[MAX]] : !inter.rows<N, 1xf32>
// CHECK-NEXT: %m = inter.div %[[M]], %[[COLUMN]] : !inter.rows<N, 4xf32>
// CHECK-NEXT: inter.reduce sum %x over %g along (dst, rel) : !inter.rows<g[dst, rel], 4xf32>
// CHECK: %p = inter.div %{{.*}}, %{{.*}} : !inter.rows<g[dst, rel], 4xf32>
// CHECK-NEXT: inter.reduce sum %x over %g along () : !inter.rows<unit, 4xf32>
// CHECK-NEXT: inter.cast %e : !inter.rows<unit, f32>
// CHECK: %t = inter.div %{{.*}}, %{{.*}} : !inter.rows<unit, 4xf32>
// CHECK-NEXT: %k = inter.reduce mean %x over %g along dst : !inter.rows<N, 4xf32>
// CHECK-NEXT: %h = inter.reduce mean %y over %g[dst, rel] along rel : !inter.rows<R, f32>
// CHECK-NEXT: %u = inter.cast %c : !inter.rows<N, f32>
// CHECK-NEXT: %w = inter.size %N : !inter.rows<unit, i64>
// CHECK-NEXT: func.return %m, %p, %t, %k, %h, %u, %c, %e, %w
func.func @counts(%N : !inter.set<N>, %R : !inter.set<R>, %g : !inter.set<g, src: N, dst: N, rel: R, pairs (dst, rel)>, %e : !inter.rows<unit, i64> {inter.global_count = ["g"]}, %c : !inter.rows<N, i64> {inter.global_count = ["g", "src"]}, %cp : !inter.rows<g[dst, rel], i64> {inter.global_count = ["g", "rel", "dst"]}, %cr : !inter.rows<R, i64> {inter.global_count = ["g", "rel"]}, %x : !inter.rows<g, 4xf32>, %y : !inter.rows<g[dst, rel], f32>) -> (!inter.rows<N, 4xf32>, !inter.rows<g[dst, rel], 4xf32>, !inter.rows<unit, 4xf32>, !inter.rows<N, 4xf32>, !inter.rows<R, f32>, !inter.rows<N, f32>, !inter.rows<N, i64>, !inter.rows<unit, i64>, !inter.rows<unit, i64>) {
  %m = inter.reduce mean %x over %g along src : !inter.rows<N, 4xf32>
  %p = inter.reduce mean %x over %g along (dst, rel) : !inter.rows<g[dst, rel], 4xf32>
  %t = inter.reduce mean %x over %g along () : !inter.rows<unit, 4xf32>
  %k = inter.reduce mean %x over %g along dst : !inter.rows<N, 4xf32>
  %h = inter.reduce mean %y over %g[dst, rel] along rel : !inter.rows<R, f32>
  %u = inter.count over %g along src : !inter.rows<N, f32>
  %v = inter.count over %g along src : !inter.rows<N, i64>
  %s = inter.size %g : !inter.rows<unit, i64>
  %w = inter.size %N : !inter.rows<unit, i64>
  func.return %m, %p, %t, %k, %h, %u, %v, %s, %w : !inter.rows<N, 4xf32>, !inter.rows<g[dst, rel], 4xf32>, !inter.rows<unit, 4xf32>, !inter.rows<N, 4xf32>, !inter.rows<R, f32>, !inter.rows<N, f32>, !inter.rows<N, i64>, !inter.rows<unit, i64>, !inter.rows<unit, i64>
}

// -----

// A map into a set that is not cut may be made of global numbers.
// CHECK-LABEL: func.func @position
// CHECK: %m = inter.mod %i, %{{.*}} : !inter.rows<N, i64>
// CHECK: inter.attach %N (place = %m)
func.func @position(%N : !inter.set<N>, %i : !inter.rows<N, i64> {inter.global_rows}, %x : !inter.rows<N, f32>) -> !inter.rows<P, f32> {
  %P = inter.range 3 : !inter.set<P>
  %n = inter.iota %N : !inter.rows<N, i64>
  %three = inter.const 3 : !inter.rows<unit, i64>
  %m = inter.mod %n, %three : !inter.rows<N, i64>
  %A = inter.attach %N (place = %m) : !inter.set<A, place: P, parent: N mono onto>
  %a = inter.at %A[parent], %x : !inter.rows<A, f32>
  %s = inter.reduce sum %a over %A along place : !inter.rows<P, f32>
  func.return %s : !inter.rows<P, f32>
}
