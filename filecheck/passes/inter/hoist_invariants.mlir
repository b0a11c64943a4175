// RUN: gnn-opt %s -p hoist-invariants,verify-sets --split-input-file | filecheck %s
// RUN: gnn-opt %s -p "hoist-invariants{edge_width=4}" --split-input-file | filecheck %s --check-prefix=WIDE

// The last invariant value that is worth storing is marked; views and what leads to it are not.
// CHECK-LABEL: func.func @norm
// CHECK-NEXT: %deg = inter.count over %g along dst : !inter.rows<N, f32>
// CHECK-NEXT: %dis = inter.rsqrt %deg {zero = 0.0, inter.prepare} : !inter.rows<N, f32>
// CHECK-NEXT: %disc = inter.reshape %dis : !inter.rows<N, 1xf32>
// CHECK-NOT: inter.prepare
// CHECK: func.return
func.func @norm(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 6xf32>, %W : !inter.rows<unit, 6x4xf32>) -> !inter.rows<N, 4xf32> {
  %deg = inter.count over %g along dst : !inter.rows<N, f32>
  %dis = inter.rsqrt %deg {zero = 0.0} : !inter.rows<N, f32>
  %disc = inter.reshape %dis : !inter.rows<N, 1xf32>
  %xs = inter.mul %disc, %x : !inter.rows<N, 6xf32>
  %m = inter.at %g[src], %xs : !inter.rows<g[src], 6xf32>
  %a = inter.reduce sum %m over %g along dst : !inter.rows<N, 6xf32>
  %h = inter.contract "k,kf->f" %a, %W : !inter.rows<N, 4xf32>
  func.return %h : !inter.rows<N, 4xf32>
}

// -----

// A scalar per edge is stored, wider pointwise values per edge only where the option says so.
// CHECK-LABEL: func.func @edges
// CHECK: %n = inter.mul %a, %b {inter.prepare} : !inter.rows<g, f32>
// CHECK-NOT: inter.prepare
// CHECK: func.return
// WIDE-LABEL: func.func @edges
// WIDE: %v = inter.mul %f, %f {inter.prepare} : !inter.rows<g, 4xf32>
func.func @edges(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %t : !inter.rows<g, 4xi64>, %x : !inter.rows<N, 4xf32>) -> (!inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>) {
  %deg = inter.count over %g along dst : !inter.rows<N, f32>
  %a = inter.at %g[src], %deg : !inter.rows<g[src], f32>
  %b = inter.at %g[dst], %deg : !inter.rows<g[dst], f32>
  %n = inter.mul %a, %b : !inter.rows<g, f32>
  %f = inter.cast %t : !inter.rows<g, 4xf32>
  %v = inter.mul %f, %f : !inter.rows<g, 4xf32>
  %xs = inter.at %g[src], %x : !inter.rows<g[src], 4xf32>
  %p = inter.mul %xs, %n : !inter.rows<g, 4xf32>
  %q = inter.mul %xs, %v : !inter.rows<g, 4xf32>
  %o = inter.reduce sum %p over %g along dst : !inter.rows<N, 4xf32>
  %r = inter.reduce sum %q over %g along dst : !inter.rows<N, 4xf32>
  func.return %o, %r : !inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>
}

// -----

// Not invariant: dropout, a step counter that the function updates, constants that cost nothing.
// CHECK-LABEL: func.func @calls
// CHECK-NOT: inter.prepare
// CHECK: func.return
func.func @calls(%N : !inter.set<N>, %key : !inter.rows<unit, i64>, %steps : !inter.rows<N, i64>) -> (!inter.rows<N, f32>, !inter.rows<N, i64> {inter.update = "steps"}, !inter.rows<unit, f32>) {
  %one = inter.const 1 : !inter.rows<unit, i64>
  %next = inter.add %steps, %one : !inter.rows<N, i64>
  %half = inter.const 0.5 : !inter.rows<unit, f32>
  %quarter = inter.mul %half, %half : !inter.rows<unit, f32>
  %d = inter.dropout %half, %key over %N {p = 0.5, site = 0} : !inter.rows<N, f32>
  func.return %d, %next, %quarter : !inter.rows<N, f32>, !inter.rows<N, i64>, !inter.rows<unit, f32>
}

// -----

// Nor is what is wider than all it is computed from: one-hot rows of a label.
// CHECK-LABEL: func.func @one_hot
// CHECK-NOT: inter.prepare
// CHECK: func.return
func.func @one_hot(%N : !inter.set<N>, %label : !inter.rows<N, i64>, %x : !inter.rows<N, 10xf32>) -> !inter.rows<N, 10xf32> {
  %classes = inter.table [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] : !inter.rows<unit, 10xi64>
  %l = inter.reshape %label : !inter.rows<N, 1xi64>
  %hit = inter.eq %l, %classes : !inter.rows<N, 10xi1>
  %zero = inter.const 0.0 : !inter.rows<unit, f32>
  %y = inter.where %hit, %x, %zero : !inter.rows<N, 10xf32>
  func.return %y : !inter.rows<N, 10xf32>
}

// -----

// What leads to a stored value and is read later as well is computed by both.
// CHECK-LABEL: func.func @both
// CHECK: %hit = inter.eq
// CHECK: inter.row_reduce sum %ones [0] {inter.prepare}
// CHECK: %[[LATE:.*]] = inter.eq
// CHECK: inter.where %[[LATE]], %x
func.func @both(%N : !inter.set<N>, %label : !inter.rows<N, i64>, %x : !inter.rows<N, 10xf32>) -> (!inter.rows<N, f32>, !inter.rows<N, 10xf32>) {
  %classes = inter.table [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] : !inter.rows<unit, 10xi64>
  %l = inter.reshape %label : !inter.rows<N, 1xi64>
  %hit = inter.eq %l, %classes : !inter.rows<N, 10xi1>
  %zero = inter.const 0.0 : !inter.rows<unit, f32>
  %one = inter.const 1.0 : !inter.rows<unit, f32>
  %ones = inter.where %hit, %one, %zero : !inter.rows<N, 10xf32>
  %n = inter.row_reduce sum %ones [0] : !inter.rows<N, f32>
  %s = inter.row_reduce sum %x [0] : !inter.rows<N, f32>
  %r = inter.mul %n, %s : !inter.rows<N, f32>
  %y = inter.where %hit, %x, %zero : !inter.rows<N, 10xf32>
  func.return %r, %y : !inter.rows<N, f32>, !inter.rows<N, 10xf32>
}

// -----

// Of inputs that stay the same what took many rows is marked: no pointwise value, none that takes
// far more memory than they do.
// CHECK-LABEL: func.func @inputs
// CHECK: %a = inter.reduce sum %m over %g along dst {inter.prepare}
// CHECK: inter.softmax %xs over %g along dst : !inter.rows<g, 6xf32>
// CHECK-NOT: inter.prepare
// CHECK: func.return
func.func @inputs(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 6xf32> {inter.constant}, %y : !inter.rows<N, 6xf32>) -> (!inter.rows<N, 6xf32>, !inter.rows<g, 6xf32>) {
  %x2 = inter.mul %x, %x : !inter.rows<N, 6xf32>
  %m = inter.at %g[src], %x2 : !inter.rows<g[src], 6xf32>
  %a = inter.reduce sum %m over %g along dst : !inter.rows<N, 6xf32>
  %xs = inter.at %g[src], %x : !inter.rows<g[src], 6xf32>
  %s = inter.softmax %xs over %g along dst : !inter.rows<g, 6xf32>
  %ys = inter.at %g[src], %y : !inter.rows<g, 6xf32>
  %p = inter.mul %s, %ys : !inter.rows<g, 6xf32>
  %q = inter.mul %x2, %y : !inter.rows<N, 6xf32>
  %r = inter.add %a, %q : !inter.rows<N, 6xf32>
  func.return %r, %p : !inter.rows<N, 6xf32>, !inter.rows<g, 6xf32>
}
