// RUN: gnn-opt %s | filecheck %s
// RUN: GNN_ROUNDTRIP
// RUN: GNN_GENERIC_ROUNDTRIP

// CHECK-LABEL: func.func @structure
// CHECK-SAME: %V: !inter.set<N, tag: T>, %R: !inter.set<R, st: T>, %T: !inter.set<T>,
// CHECK-SAME: %g: !inter.set<g, src: N, dst: N, rel: R, eq src.tag = rel.st, pairs (rel, src) (dst, rel)>,
// CHECK-GENERIC: func.func
func.func @structure(%V : !inter.set<N, tag: T>, %R : !inter.set<R, st: T>, %T : !inter.set<T>, %g : !inter.set<g, src: N, dst: N, rel: R, eq src.tag = rel.st, pairs (src, rel) (dst, rel)>, %mask : !inter.rows<g, i1>, %ids : !inter.rows<g, 2xi64>, %n : !inter.rows<unit, i64>) {
  // CHECK: %a = inter.filter %g {no_loops} : !inter.set<a, src: N, dst: N, rel: R, parent: g mono, eq src.tag = rel.st, pairs (rel, src) (dst, rel)>
  // CHECK-GENERIC: "inter.filter"(%{{.*}}) <{no_loops}> : (!inter.set<g, src: N,
  %a = inter.filter %g {no_loops} : !inter.set<a, src: N, dst: N, rel: R, parent: g mono, eq src.tag = rel.st, pairs (rel, src) (dst, rel)>
  // CHECK-NEXT: %b = inter.filter %g, %mask : !inter.set<b, src: N, dst: N, rel: R, parent: g mono>
  %b = inter.filter %g, %mask : !inter.set<b, src: N, dst: N, rel: R, parent: g mono>
  // CHECK-NEXT: %l = inter.loops %g : !inter.set<l, src: N mono onto, dst: N mono onto>
  %l = inter.loops %g : !inter.set<l, src: N mono onto, dst: N mono onto>
  // CHECK-NEXT: %m = inter.loops %g {remaining} : !inter.set<m, src: N mono onto, dst: N mono onto, old: g partial>
  %m = inter.loops %g {remaining} : !inter.set<m, src: N mono onto, dst: N mono onto, old: g partial>
  // CHECK-NEXT: %u = inter.union %a, %m : !inter.set<u, src: N onto, dst: N onto, parts a m>
  %u = inter.union %a, %m : !inter.set<u, src: N onto, dst: N onto, parts a m>
  // CHECK-NEXT: %r = inter.range 3 : !inter.set<r>
  // CHECK-GENERIC: "inter.range"() <{size = 3 : i64}> : () -> !inter.set<r>
  %r = inter.range 3 : !inter.set<r>
  // CHECK-NEXT: %s = inter.sized %n : !inter.set<s>
  %s = inter.sized %n : !inter.set<s>
  // CHECK-NEXT: %j = inter.interval %g, %n, %n : !inter.set<j, src: N, dst: N, rel: R, parent: g mono, eq src.tag = rel.st, pairs (rel, src) (dst, rel)>
  %j = inter.interval %g, %n, %n : !inter.set<j, src: N, dst: N, rel: R, parent: g mono, eq src.tag = rel.st, pairs (rel, src) (dst, rel)>
  %id = inter.slice %ids {dim = 0, lo = 0, hi = 1} : !inter.rows<g, 1xi64>
  %i = inter.reshape %id : !inter.rows<g, i64>
  // CHECK: %h = inter.attach %g (kind = %i, same = %i) : !inter.set<h, src: N, dst: N, rel: R, kind: r partial, same: s, parent: g mono onto, pairs (same, src)>
  // CHECK-GENERIC: "inter.attach"(%{{.*}}) <{labels = ["kind", "same"]}>
  %h = inter.attach %g (kind = %i, same = %i) : !inter.set<h, src: N, dst: N, rel: R, kind: r partial, same: s, parent: g mono onto, pairs (same, src)>
  // CHECK-NEXT: %c = inter.attach %g (kind = %i) {checked} : !inter.set<c, src: N, dst: N, rel: R, kind: r, parent: g mono onto>
  // CHECK-GENERIC: "inter.attach"(%{{.*}}) <{labels = ["kind"], checked}>
  %c = inter.attach %g (kind = %i) {checked} : !inter.set<c, src: N, dst: N, rel: R, kind: r, parent: g mono onto>
  func.return
}

// CHECK-LABEL: func.func @constants
func.func @constants() {
  // CHECK-NEXT: %a = inter.const 1.0 : !inter.rows<unit, 8xf32>
  // CHECK-GENERIC: "inter.const"() <{value = 1.000000e+00 : f64}> : () -> !inter.rows<unit, 8xf32>
  %a = inter.const 1.0 : !inter.rows<unit, 8xf32>
  // CHECK-NEXT: %b = inter.const -1.0e-12 : !inter.rows<unit, f64>
  %b = inter.const -1.0e-12 : !inter.rows<unit, f64>
  // CHECK-NEXT: %c = inter.const -inf : !inter.rows<unit, f32>
  %c = inter.const -inf : !inter.rows<unit, f32>
  // CHECK-NEXT: %d = inter.const -3 : !inter.rows<unit, i64>
  // CHECK-GENERIC: "inter.const"() <{value = -3 : i64}> : () -> !inter.rows<unit, i64>
  %d = inter.const -3 : !inter.rows<unit, i64>
  // CHECK-NEXT: %e = inter.const true : !inter.rows<unit, i1>
  %e = inter.const true : !inter.rows<unit, i1>
  // CHECK-NEXT: %f = inter.table [0.5, 1.0, -2.0, 1.0e-05] : !inter.rows<unit, 2x2xf32>
  %f = inter.table [0.5, 1.0, -2.0, 1.0e-5] : !inter.rows<unit, 2x2xf32>
  // CHECK-NEXT: %h = inter.table [0, 1] : !inter.rows<unit, 2xi32>
  %h = inter.table [0, 1] : !inter.rows<unit, 2xi32>
  func.return
}

// CHECK-LABEL: func.func @reads
func.func @reads(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %l : !inter.set<l, src: N mono onto, old: g partial>, %p : !inter.set<p, pair: g>, %x : !inter.rows<N, 4xf32>, %w : !inter.rows<g, f32>, %z : !inter.rows<unit, 3x8xf32>) {
  // CHECK: %xs = inter.at %g[src], %x : !inter.rows<g[src], 4xf32>
  // CHECK-GENERIC: "inter.at"(%{{[a-z]+}}, %{{[a-z]+}}) <{path = "src"}>
  %xs = inter.at %g[src], %x : !inter.rows<g[src], 4xf32>
  // CHECK-NEXT: %xp = inter.at %p[pair.dst], %x : !inter.rows<p[pair.dst], 4xf32>
  %xp = inter.at %p[pair.dst], %x : !inter.rows<p[pair.dst], 4xf32>
  %one = inter.const 1.0 : !inter.rows<unit, f32>
  // CHECK: %wl = inter.at %l[old], %w else %one : !inter.rows<l, f32>
  %wl = inter.at %l[old], %w else %one : !inter.rows<l, f32>
  // CHECK-NEXT: %i = inter.index %g[src] : !inter.rows<g, i64>
  %i = inter.index %g[src] : !inter.rows<g, i64>
  // CHECK-NEXT: %j = inter.iota %N : !inter.rows<N, i64>
  %j = inter.iota %N : !inter.rows<N, i64>
  // CHECK-NEXT: %n = inter.size %N : !inter.rows<unit, i64>
  %n = inter.size %N : !inter.rows<unit, i64>
  %ll = inter.loops %g : !inter.set<ll, src: N mono onto, dst: N mono onto>
  %u = inter.union %g, %ll : !inter.set<u, src: N onto, dst: N onto, parts g ll>
  // CHECK: %s = inter.stack %u, %w, %one : !inter.rows<u, f32>
  %s = inter.stack %u, %w, %one : !inter.rows<u, f32>
  // CHECK-NEXT: %t = inter.part 1 of %u, %s : !inter.rows<ll, f32>
  // CHECK-GENERIC: "inter.part"(%{{.*}}) <{index = #builtin.int<1>}>
  %t = inter.part 1 of %u, %s : !inter.rows<ll, f32>
  %R = inter.range 3 : !inter.set<R>
  // CHECK: %zr = inter.as_rows %R, %z : !inter.rows<R, 8xf32>
  %zr = inter.as_rows %R, %z : !inter.rows<R, 8xf32>
  // CHECK-NEXT: %zu = inter.as_unit %R, %zr : !inter.rows<unit, 3x8xf32>
  %zu = inter.as_unit %R, %zr : !inter.rows<unit, 3x8xf32>
  // CHECK-NEXT: %c = inter.cast %w : !inter.rows<g, i64>
  %c = inter.cast %w : !inter.rows<g, i64>
  // CHECK-NEXT: %st = inter.stop %x : !inter.rows<N, 4xf32>
  %st = inter.stop %x : !inter.rows<N, 4xf32>
  func.return
}

// CHECK-LABEL: func.func @shapes
func.func @shapes(%N : !inter.set<N>, %x : !inter.rows<N, 2x4xf32>, %W : !inter.rows<unit, 4x3xf32>) {
  // CHECK: %a = inter.contract "hk,kf->hf" %x, %W : !inter.rows<N, 2x3xf32>
  // CHECK-GENERIC: "inter.contract"(%{{.*}}) <{spec = "hk,kf->hf"}>
  %a = inter.contract "hk,kf->hf" %x, %W : !inter.rows<N, 2x3xf32>
  // CHECK-NEXT: %b = inter.reshape %x : !inter.rows<N, 8xf32>
  %b = inter.reshape %x : !inter.rows<N, 8xf32>
  // CHECK-NEXT: %c = inter.broadcast %x : !inter.rows<N, 3x2x4xf32>
  %c = inter.broadcast %x : !inter.rows<N, 3x2x4xf32>
  // CHECK-NEXT: %d = inter.transpose %x [1, 0] : !inter.rows<N, 4x2xf32>
  %d = inter.transpose %x [1, 0] : !inter.rows<N, 4x2xf32>
  // CHECK-NEXT: %e = inter.slice %x {dim = 1, lo = 1, hi = 4, step = 2} : !inter.rows<N, 2x2xf32>
  %e = inter.slice %x {dim = 1, lo = 1, hi = 4, step = 2} : !inter.rows<N, 2x2xf32>
  // CHECK-NEXT: %f = inter.concat %x, %e {dim = 1} : !inter.rows<N, 2x6xf32>
  %f = inter.concat %x, %e {dim = 1} : !inter.rows<N, 2x6xf32>
  // CHECK-NEXT: %h = inter.row_reduce max %x [0, 1] : !inter.rows<N, f32>
  // CHECK-GENERIC: "inter.row_reduce"(%{{.*}}) <{kind = "max", dims = [#builtin.int<0>, #builtin.int<1>]}>
  %h = inter.row_reduce max %x [0, 1] : !inter.rows<N, f32>
  func.return
}

// CHECK-LABEL: func.func @reductions
func.func @reductions(%N : !inter.set<N>, %R : !inter.set<R>, %g : !inter.set<g, src: N, dst: N, rel: R, pairs (rel, src) (dst, rel)>, %x : !inter.rows<g, 4xf32>, %y : !inter.rows<g[rel, src], f32>, %key : !inter.rows<unit, i64>, %z : !inter.rows<N, 4xf32>, %i : !inter.rows<N, i64>) {
  // CHECK: %a = inter.reduce sum %x over %g along dst : !inter.rows<N, 4xf32>
  // CHECK-GENERIC: "inter.reduce"(%{{.*}}) <{kind = "sum", over_keys = [], along = ["dst"]}>
  %a = inter.reduce sum %x over %g along dst : !inter.rows<N, 4xf32>
  // CHECK-NEXT: %b = inter.reduce mean %x over %g along () : !inter.rows<unit, 4xf32>
  %b = inter.reduce mean %x over %g along () : !inter.rows<unit, 4xf32>
  // CHECK-NEXT: %c = inter.reduce max %x over %g along (dst, rel) {zero_ties} : !inter.rows<g[dst, rel], 4xf32>
  %c = inter.reduce max %x over %g along (dst, rel) {zero_ties} : !inter.rows<g[dst, rel], 4xf32>
  // CHECK-NEXT: %d = inter.reduce mul %y over %g[rel, src] along rel : !inter.rows<R, f32>
  %d = inter.reduce mul %y over %g[rel, src] along rel : !inter.rows<R, f32>
  // CHECK-NEXT: %e = inter.reduce last %x over %g along dst else %z : !inter.rows<N, 4xf32>
  %e = inter.reduce last %x over %g along dst else %z : !inter.rows<N, 4xf32>
  // CHECK-NEXT: %h = inter.reduce last %x over %g along dst else %z {every} : !inter.rows<N, 4xf32>
  %h = inter.reduce last %x over %g along dst else %z {every} : !inter.rows<N, 4xf32>
  // CHECK-NEXT: %f = inter.reduce min %x over %g along src : !inter.rows<N, 4xf32>
  %f = inter.reduce min %x over %g along src : !inter.rows<N, 4xf32>
  // CHECK-NEXT: %s = inter.softmax %x over %g along dst : !inter.rows<g, 4xf32>
  %s = inter.softmax %x over %g along dst : !inter.rows<g, 4xf32>
  // CHECK-NEXT: %n = inter.count over %g[rel, src] along src : !inter.rows<N, f32>
  %n = inter.count over %g[rel, src] along src : !inter.rows<N, f32>
  // CHECK-NEXT: %o = inter.dropout %z, %key over %N {p = 0.5, site = 2} : !inter.rows<N, 4xf32>
  %o = inter.dropout %z, %key over %N {p = 0.5, site = 2} : !inter.rows<N, 4xf32>
  // CHECK-NEXT: %w = inter.dropout %b, %key {p = 0.25, site = 3} : !inter.rows<unit, 4xf32>
  %w = inter.dropout %b, %key {p = 0.25, site = 3} : !inter.rows<unit, 4xf32>
  // CHECK-NEXT: %q = inter.dropout %z, %key over %N as %i {p = 0.5, site = 2} : !inter.rows<N, 4xf32>
  // CHECK-GENERIC: "inter.dropout"(%z, %key, %N, %i) <{p = 5.000000e-01 : f64, site = 2 : i64}>
  %q = inter.dropout %z, %key over %N as %i {p = 0.5, site = 2} : !inter.rows<N, 4xf32>
  // CHECK-NEXT: %entries = inter.dropout %n, %key over %N as %i at %i {p = 0.5, site = 2} : !inter.rows<N, f32>
  %entries = inter.dropout %n, %key over %N as %i at %i {p = 0.5, site = 2} : !inter.rows<N, f32>
  // CHECK-NEXT: %r = inter.dropout %b, %key as %key {p = 0.25, site = 3} : !inter.rows<unit, 4xf32>
  %r = inter.dropout %b, %key as %key {p = 0.25, site = 3} : !inter.rows<unit, 4xf32>
  func.return
}

// CHECK-LABEL: func.func @pointwise
func.func @pointwise(%N : !inter.set<N>, %x : !inter.rows<N, 4xf32>, %y : !inter.rows<unit, f32>, %i : !inter.rows<N, i64>) {
  // CHECK: %a = inter.add %x, %y : !inter.rows<N, 4xf32>
  %a = inter.add %x, %y : !inter.rows<N, 4xf32>
  // CHECK-NEXT: %b = inter.leaky_relu %x {slope = 0.2} : !inter.rows<N, 4xf32>
  // CHECK-GENERIC: "inter.leaky_relu"(%{{.*}}) <{slope = 2.000000e-01 : f64}>
  %b = inter.leaky_relu %x {slope = 0.2} : !inter.rows<N, 4xf32>
  // CHECK-NEXT: %c = inter.rsqrt %x {zero = 0.0} : !inter.rows<N, 4xf32>
  %c = inter.rsqrt %x {zero = 0.0} : !inter.rows<N, 4xf32>
  // CHECK-NEXT: %d = inter.rsqrt %x : !inter.rows<N, 4xf32>
  %d = inter.rsqrt %x : !inter.rows<N, 4xf32>
  // CHECK-NEXT: %e = inter.gt %x, %y : !inter.rows<N, 4xi1>
  %e = inter.gt %x, %y : !inter.rows<N, 4xi1>
  // CHECK-NEXT: %f = inter.where %e, %x, %y {note = "kept"} : !inter.rows<N, 4xf32>
  %f = inter.where %e, %x, %y {note = "kept"} : !inter.rows<N, 4xf32>
  // CHECK-NEXT: %h = inter.floordiv %i, %i : !inter.rows<N, i64>
  %h = inter.floordiv %i, %i : !inter.rows<N, i64>
  // CHECK-NEXT: %k = inter.elu %x {alpha = 1.0} : !inter.rows<N, 4xf32>
  %k = inter.elu %x {alpha = 1.0} : !inter.rows<N, 4xf32>
  // CHECK-NEXT: %l = inter.logical_not %e : !inter.rows<N, 4xi1>
  %l = inter.logical_not %e : !inter.rows<N, 4xi1>
  func.return
}

// CHECK-LABEL: func.func @messages
func.func @messages(%P : !inter.set<P>, %K : !inter.set<K, peer: P mono>, %S : !inter.set<S, rank: K, peer: P>, %H : !inter.set<H, rank: K, peer: P>, %x : !inter.rows<S, 4xf32>) {
  // CHECK-NEXT: %y = inter.move %x from %S to %H : !inter.rows<H, 4xf32>
  %y = inter.move %x from %S to %H : !inter.rows<H, 4xf32>
  // CHECK-NEXT: %s = inter.reduce sum %y over %H along () : !inter.rows<unit, 4xf32>
  // CHECK-NEXT: %t = inter.all_reduce sum %s : !inter.rows<unit, 4xf32>
  %s = inter.reduce sum %y over %H along () : !inter.rows<unit, 4xf32>
  %t = inter.all_reduce sum %s : !inter.rows<unit, 4xf32>
  func.return
}
