// RUN: gnn-opt %s -p plan-saves,verify-sets --split-input-file | filecheck %s

// %r is stored: it gives the mask and, with its key, the dropped rows. The message per edge is read
// again, and so is the view of the invariant norm.
// CHECK-LABEL: func.func @gcn
// CHECK: %r = inter.relu
// CHECK-NEXT: %y = inter.dropout %r, %key over %N {p = 0.5, site = 0} : !inter.rows<N, 4xf32>
// CHECK: %[[Y:.*]] = inter.dropout %r, %key over %N {p = 0.5, site = 0, inter.recompute}
// CHECK: inter.mul %d_q, %[[Y]]
// CHECK: %k = inter.gt %r, %zero {inter.recompute}
// CHECK: %[[DISC:.*]] = inter.reshape %dis {inter.recompute}
// CHECK-NEXT: inter.mul %[[DISC]], %dz
// CHECK-NOT: inter.save
func.func @gcn(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %key : !inter.rows<unit, i64>, %x : !inter.rows<N, 4xf32> {inter.needs_grad}, %d_q : !inter.rows<N, 4xf32> {inter.cotangent})
    -> (!inter.rows<N, 4xf32>, !inter.rows<N, 4xf32> {inter.grad = "x"}) {
  %deg = inter.count over %g along dst : !inter.rows<N, f32>
  %dis = inter.rsqrt %deg {zero = 0.0} : !inter.rows<N, f32>
  %disc = inter.reshape %dis : !inter.rows<N, 1xf32>
  %s = inter.mul %disc, %x : !inter.rows<N, 4xf32>
  %m = inter.at %g[src], %s : !inter.rows<g[src], 4xf32>
  %a = inter.reduce sum %m over %g along dst : !inter.rows<N, 4xf32>
  %r = inter.relu %a : !inter.rows<N, 4xf32>
  %y = inter.dropout %r, %key over %N {p = 0.5, site = 0} : !inter.rows<N, 4xf32>
  %q = inter.mul %y, %y : !inter.rows<N, 4xf32>
  %zero = inter.const 0.0 : !inter.rows<unit, f32>
  %k = inter.gt %r, %zero : !inter.rows<N, 4xi1>
  %dq1 = inter.mul %d_q, %y : !inter.rows<N, 4xf32>
  %dq = inter.add %dq1, %dq1 : !inter.rows<N, 4xf32>
  %dr = inter.dropout %dq, %key over %N {p = 0.5, site = 0} : !inter.rows<N, 4xf32>
  %dz = inter.where %k, %dr, %zero : !inter.rows<N, 4xf32>
  %dc = inter.mul %disc, %dz : !inter.rows<N, 4xf32>
  %e = inter.at %g[dst], %dc : !inter.rows<g[dst], 4xf32>
  %ds = inter.reduce sum %e over %g along src : !inter.rows<N, 4xf32>
  func.return %q, %ds : !inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>
}

// -----

// A wide value per edge is made again from the node values; a softmax is kept.
// CHECK-LABEL: func.func @attention
// CHECK: %w = inter.tanh %v : !inter.rows<g, 8xf32>
// CHECK: %p = inter.softmax %l over %g along dst : !inter.rows<g, f32>
// CHECK: inter.add {{.*}} {inter.recompute} : !inter.rows<g, 8xf32>
// CHECK: %[[W:.*]] = inter.tanh {{.*}} {inter.recompute}
// CHECK-NOT: inter.softmax
// CHECK: inter.mul %{{.*}}, %[[W]]
func.func @attention(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 8xf32> {inter.needs_grad}, %e : !inter.rows<g, f32>, %d_o : !inter.rows<N, 8xf32> {inter.cotangent})
    -> (!inter.rows<N, 8xf32>, !inter.rows<N, 8xf32> {inter.grad = "x"}) {
  %xs = inter.at %g[src], %x : !inter.rows<g[src], 8xf32>
  %xd = inter.at %g[dst], %x : !inter.rows<g[dst], 8xf32>
  %v = inter.add %xs, %xd : !inter.rows<g, 8xf32>
  %w = inter.tanh %v : !inter.rows<g, 8xf32>
  %l = inter.mul %e, %e : !inter.rows<g, f32>
  %p = inter.softmax %l over %g along dst : !inter.rows<g, f32>
  %m = inter.mul %p, %w : !inter.rows<g, 8xf32>
  %o = inter.reduce sum %m over %g along dst : !inter.rows<N, 8xf32>
  %do = inter.at %g[dst], %d_o : !inter.rows<g[dst], 8xf32>
  %dm = inter.mul %do, %p : !inter.rows<g, 8xf32>
  %dw = inter.mul %dm, %w : !inter.rows<g, 8xf32>
  %dx = inter.reduce sum %dw over %g along src : !inter.rows<N, 8xf32>
  func.return %o, %dx : !inter.rows<N, 8xf32>, !inter.rows<N, 8xf32>
}

// -----

// A value that only gradients use is stored where that is less than what it follows from: the
// forward computes it (inter.save).
// CHECK-LABEL: func.func @narrow
// CHECK: %n = inter.row_reduce sum %a [0] {inter.save}
// CHECK: inter.mul %d_o, %n
func.func @narrow(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 64xf32> {inter.needs_grad}, %d_o : !inter.rows<N, f32> {inter.cotangent})
    -> (!inter.rows<N, f32>, !inter.rows<N, f32> {inter.grad = "x"}) {
  %xs = inter.at %g[src], %x : !inter.rows<g[src], 64xf32>
  %a = inter.reduce sum %xs over %g along dst : !inter.rows<N, 64xf32>
  %o = inter.row_reduce max %a [0] : !inter.rows<N, f32>
  %n = inter.row_reduce sum %a [0] : !inter.rows<N, f32>
  %d = inter.mul %d_o, %n : !inter.rows<N, f32>
  func.return %o, %d : !inter.rows<N, f32>, !inter.rows<N, f32>
}

// -----

// Only gradients use %s, the sum of weights times messages: the forward adds it up beside %o, from
// the same reads. Of %t, along src, no loop of the forward has the rows: the backward half does it.
// CHECK-LABEL: func.func @alongside
// CHECK: %o = inter.reduce sum %a over %g along dst : !inter.rows<N, 8xf32>
// CHECK: %s = inter.reduce sum %{{.*}} over %g along dst {inter.save} : !inter.rows<N, 8xf32>
// CHECK: %t = inter.reduce sum %{{.*}} over %g along src {inter.recompute} : !inter.rows<N, 8xf32>
func.func @alongside(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 8xf32> {inter.needs_grad}, %w : !inter.rows<g, f32>, %d_o : !inter.rows<N, 8xf32> {inter.cotangent})
    -> (!inter.rows<N, 8xf32>, !inter.rows<N, 8xf32> {inter.grad = "x"}) {
  %a = inter.at %g[src], %x : !inter.rows<g[src], 8xf32>
  %b = inter.at %g[dst], %x : !inter.rows<g[dst], 8xf32>
  %o = inter.reduce sum %a over %g along dst : !inter.rows<N, 8xf32>
  %wa = inter.mul %w, %a : !inter.rows<g, 8xf32>
  %wb = inter.mul %w, %b : !inter.rows<g, 8xf32>
  %s = inter.reduce sum %wa over %g along dst : !inter.rows<N, 8xf32>
  %t = inter.reduce sum %wb over %g along src : !inter.rows<N, 8xf32>
  %ds = inter.mul %d_o, %s : !inter.rows<N, 8xf32>
  %dt = inter.mul %d_o, %t : !inter.rows<N, 8xf32>
  %dx = inter.add %ds, %dt : !inter.rows<N, 8xf32>
  func.return %o, %dx : !inter.rows<N, 8xf32>, !inter.rows<N, 8xf32>
}

// -----

// What the caller gets is at hand: the backward half reads %o, not the argument, to compute it again.
// Rows that are gathered for the caller are more to read than what they are gathered from.
// CHECK-LABEL: func.func @handed_out
// CHECK: %d = inter.mul %d_o, %o
// CHECK: %[[B:.*]] = inter.exp %{{.*}} {inter.recompute}
// CHECK: inter.mul %d_b, %[[B]]
func.func @handed_out(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 8xf32> {inter.needs_grad}, %d_o : !inter.rows<N, 8xf32> {inter.cotangent}, %d_b : !inter.rows<g, 8xf32> {inter.cotangent})
    -> (!inter.rows<N, 8xf32>, !inter.rows<g, 8xf32>, !inter.rows<N, 8xf32> {inter.grad = "x"}, !inter.rows<g, 8xf32> {inter.grad = "y"}) {
  %o = inter.exp %x : !inter.rows<N, 8xf32>
  %a = inter.at %g[src], %x : !inter.rows<g[src], 8xf32>
  %b = inter.exp %a : !inter.rows<g, 8xf32>
  %d = inter.mul %d_o, %o : !inter.rows<N, 8xf32>
  %e = inter.mul %d_b, %b : !inter.rows<g, 8xf32>
  func.return %o, %b, %d, %e : !inter.rows<N, 8xf32>, !inter.rows<g, 8xf32>, !inter.rows<N, 8xf32>, !inter.rows<g, 8xf32>
}
