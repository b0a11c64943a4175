// RUN: gnn-opt %s -p split-phases,verify-sets --split-input-file | filecheck %s

// Structure and what is marked inter.prepare go to @prepare with what they need.
// CHECK: func.func @prepare(%N: !inter.set<N> {inter.name = "N"}, %g0: !inter.set<g0, src: N, dst: N> {inter.name = "g0"})
// CHECK-SAME: -> (!inter.set<g1, src: N, dst: N, parent: g0 mono, eq parent.src = src, eq parent.dst = dst> {inter.name = "g1"}
// CHECK-SAME: !inter.set<g, src: N, dst: N, parts g1 l> {inter.name = "g"}, !inter.rows<N, f32> {inter.name = "dis"})
// CHECK-NEXT: %g1 = inter.filter %g0
// CHECK-NEXT: %l = inter.loops %g0
// CHECK-NEXT: %g = inter.union %g1, %l
// CHECK-NEXT: %deg = inter.count over %g along dst
// CHECK-NEXT: %dis = inter.rsqrt %deg {zero = 0.0} : !inter.rows<N, f32>
// CHECK-NEXT: func.return %g1, %l, %g, %dis
// @forward gives its result, which the backward half uses too, and what only that uses.
// CHECK: func.func @forward(
// CHECK-SAME: %weight: !inter.rows<unit, 6x4xf32> {inter.name = "weight", inter.needs_grad}
// CHECK-SAME: %g: !inter.set<g, src: N, dst: N, parts g1 l> {inter.name = "g"}
// CHECK-SAME: -> (!inter.rows<N, 4xf32> {inter.name = "y"}, !inter.rows<N, 1xf32> {inter.name = "disc", inter.saved})
// CHECK-NEXT: %disc = inter.reshape %dis
// CHECK-NEXT: inter.contract
// CHECK-NOT: inter.const
// CHECK: func.return %y, %disc
// Arguments that are not needed do not cross, a constant is made again, cotangents come last.
// CHECK: func.func @backward(
// CHECK-NOT: weight
// CHECK-SAME: %disc: !inter.rows<N, 1xf32> {inter.name = "disc"}, %y: !inter.rows<N, 4xf32> {inter.name = "y"}, %d_y: !inter.rows<N, 4xf32> {inter.name = "d_y", inter.cotangent})
// CHECK-SAME: -> (!inter.rows<unit, 6x4xf32> {inter.grad = "weight", inter.name = "d_weight"}, !inter.rows<unit, 4xf32> {inter.name = "db", inter.grad = "bias"})
// CHECK-NEXT: %zero = inter.const 0.0
// CHECK-NEXT: inter.gt %y, %zero
// CHECK: func.return %dW, %db
func.func @gcn(%N : !inter.set<N>, %g0 : !inter.set<g0, src: N, dst: N>, %x : !inter.rows<N, 6xf32> {inter.name = "x"},
    %W : !inter.rows<unit, 6x4xf32> {inter.name = "weight", inter.needs_grad}, %b : !inter.rows<unit, 4xf32> {inter.name = "bias", inter.needs_grad},
    %d_y : !inter.rows<N, 4xf32> {inter.name = "d_y", inter.cotangent})
    -> (!inter.rows<N, 4xf32> {inter.name = "y"}, !inter.rows<unit, 6x4xf32> {inter.grad = "weight"}, !inter.rows<unit, 4xf32> {inter.name = "db", inter.grad = "bias"}) {
  %g1 = inter.filter %g0 {no_loops} : !inter.set<g1, src: N, dst: N, parent: g0 mono>
  %l = inter.loops %g0 : !inter.set<l, src: N mono onto, dst: N mono onto>
  %g = inter.union %g1, %l : !inter.set<g, src: N, dst: N, parts g1 l>
  %deg = inter.count over %g along dst : !inter.rows<N, f32>
  %dis = inter.rsqrt %deg {zero = 0.0, inter.prepare} : !inter.rows<N, f32>
  %disc = inter.reshape %dis : !inter.rows<N, 1xf32>
  %h = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 4xf32>
  %s = inter.mul %disc, %h : !inter.rows<N, 4xf32>
  %m = inter.at %g[src], %s : !inter.rows<g[src], 4xf32>
  %a = inter.reduce sum %m over %g along dst : !inter.rows<N, 4xf32>
  %c = inter.mul %disc, %a : !inter.rows<N, 4xf32>
  %z = inter.add %c, %b : !inter.rows<N, 4xf32>
  %y = inter.relu %z : !inter.rows<N, 4xf32>
  %zero = inter.const 0.0 : !inter.rows<unit, f32>
  %k = inter.gt %y, %zero : !inter.rows<N, 4xi1>
  %dz = inter.where %k, %d_y, %zero : !inter.rows<N, 4xf32>
  %db = inter.reduce sum %dz over %N along () : !inter.rows<unit, 4xf32>
  %dc = inter.mul %disc, %dz : !inter.rows<N, 4xf32>
  %e = inter.at %g[dst], %dc : !inter.rows<g[dst], 4xf32>
  %ds = inter.reduce sum %e over %g along src : !inter.rows<N, 4xf32>
  %dh = inter.mul %disc, %ds : !inter.rows<N, 4xf32>
  %o = inter.contract "k,f->kf" %x, %dh : !inter.rows<N, 6x4xf32>
  %dW = inter.reduce sum %o over %N along () : !inter.rows<unit, 6x4xf32>
  func.return %y, %dW, %db : !inter.rows<N, 4xf32>, !inter.rows<unit, 6x4xf32>, !inter.rows<unit, 4xf32>
}

// -----

// Without gradients there is no @backward; integer data that a map is made of goes to @prepare.
// CHECK: func.func @prepare(%N: {{.*}}, %E: !inter.set<E> {inter.name = "E"}, %ends: !inter.rows<E, 2xi64> {inter.name = "ends"}) -> (!inter.set<g,
// CHECK: inter.attach
// CHECK: func.func @forward(%N: {{.*}}, %E: {{.*}}, %x: {{.*}}, %g: {{.*}}) -> (!inter.rows<N, f32> {inter.name = "o"}) {
// CHECK-NEXT: inter.at
// CHECK-NEXT: inter.reduce
// CHECK-NOT: @backward
func.func @infer(%N : !inter.set<N>, %E : !inter.set<E>, %ends : !inter.rows<E, 2xi64>, %x : !inter.rows<N, f32>) -> !inter.rows<N, f32> {
  %s0 = inter.slice %ends {dim = 0, lo = 0, hi = 1} : !inter.rows<E, 1xi64>
  %s = inter.reshape %s0 : !inter.rows<E, i64>
  %d0 = inter.slice %ends {dim = 0, lo = 1, hi = 2} : !inter.rows<E, 1xi64>
  %d = inter.reshape %d0 : !inter.rows<E, i64>
  %g = inter.attach %E (src = %s, dst = %d) : !inter.set<g, src: N, dst: N, parent: E mono onto>
  %xs = inter.at %g[src], %x : !inter.rows<g, f32>
  %o = inter.reduce sum %xs over %g along dst : !inter.rows<N, f32>
  func.return %o : !inter.rows<N, f32>
}

// -----

// An op marked inter.recompute belongs to the backward half, one marked inter.save to the forward.
// CHECK: func.func @forward
// CHECK-SAME: -> (!inter.rows<N, f32> {inter.name = "y"}, !inter.rows<N, f32> {inter.name = "kept", inter.saved})
// CHECK: %kept = inter.cos %x : !inter.rows<N, f32>
// CHECK: func.func @backward(%N: {{.*}}, %x: {{.*}}, %kept: {{.*}}, %d_y: {{.*}})
// CHECK-NEXT: %r = inter.sin %x : !inter.rows<N, f32>
func.func @marks(%N : !inter.set<N>, %x : !inter.rows<N, f32> {inter.needs_grad}, %d_y : !inter.rows<N, f32> {inter.cotangent})
    -> (!inter.rows<N, f32>, !inter.rows<N, f32> {inter.grad = "x"}) {
  %y = inter.sin %x : !inter.rows<N, f32>
  %kept = inter.cos %x {inter.save} : !inter.rows<N, f32>
  %r = inter.sin %x {inter.recompute} : !inter.rows<N, f32>
  %p = inter.mul %kept, %r : !inter.rows<N, f32>
  %q = inter.mul %p, %d_y : !inter.rows<N, f32>
  func.return %y, %q : !inter.rows<N, f32>, !inter.rows<N, f32>
}

// -----

// A set that depends on floats is made by the forward, and crosses to the backward half.
// CHECK: func.func @prepare() {
// CHECK: func.func @forward
// CHECK-SAME: -> (!inter.rows<unit, f32> {inter.name = "o"}, !inter.set<T, parent: N mono> {inter.name = "T", inter.saved})
// CHECK: func.func @backward
// CHECK-SAME: %T: !inter.set<T, parent: N mono> {inter.name = "T"}
func.func @chosen(%N : !inter.set<N>, %x : !inter.rows<N, f32> {inter.needs_grad}, %d_o : !inter.rows<unit, f32> {inter.cotangent})
    -> (!inter.rows<unit, f32>, !inter.rows<N, f32> {inter.grad = "x"}) {
  %zero = inter.const 0.0 : !inter.rows<unit, f32>
  %mask = inter.gt %x, %zero : !inter.rows<N, i1>
  %T = inter.filter %N, %mask : !inter.set<T, parent: N mono>
  %xt = inter.at %T[parent], %x : !inter.rows<T, f32>
  %o = inter.reduce sum %xt over %T along () : !inter.rows<unit, f32>
  %d = inter.reduce sum %d_o over %T along parent : !inter.rows<N, f32>
  func.return %o, %d : !inter.rows<unit, f32>, !inter.rows<N, f32>
}
