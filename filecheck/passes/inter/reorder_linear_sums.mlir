// RUN: gnn-opt %s -p reorder-linear,verify-sets --split-input-file | filecheck %s
// RUN: gnn-opt %s -p infer-domains,reorder-linear,verify-sets --split-input-file | filecheck %s

// GCN without edge weights: what is constant along dst leaves the sum, what is read at src becomes
// one read, no number per edge is left.
// CHECK-LABEL: func.func @gcn
// CHECK-NEXT: %deg = inter.count over %g along dst : !inter.rows<N, f32>
// CHECK-NEXT: %dis = inter.rsqrt %deg {zero = 0.0} : !inter.rows<N, f32>
// CHECK-NEXT: %[[S:.*]] = inter.mul %dis, %x : !inter.rows<N, 4xf32>
// CHECK-NEXT: %[[M:.*]] = inter.at %g[src], %[[S]]
// CHECK-NEXT: %[[A:.*]] = inter.reduce sum %[[M]] over %g along dst : !inter.rows<N, 4xf32>
// CHECK-NEXT: %a = inter.mul %dis, %[[A]] : !inter.rows<N, 4xf32>
// CHECK-NEXT: func.return %a
func.func @gcn(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 4xf32>) -> !inter.rows<N, 4xf32> {
  %one = inter.const 1.0 : !inter.rows<unit, f32>
  %deg = inter.count over %g along dst : !inter.rows<N, f32>
  %dis = inter.rsqrt %deg {zero = 0.0} : !inter.rows<N, f32>
  %ds = inter.at %g[src], %dis : !inter.rows<g, f32>
  %dd = inter.at %g[dst], %dis : !inter.rows<g, f32>
  %n0 = inter.mul %ds, %one : !inter.rows<g, f32>
  %n = inter.mul %n0, %dd : !inter.rows<g, f32>
  %nc = inter.reshape %n : !inter.rows<g, 1xf32>
  %xs = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  %m = inter.mul %nc, %xs : !inter.rows<g, 4xf32>
  %a = inter.reduce sum %m over %g along dst : !inter.rows<N, 4xf32>
  func.return %a : !inter.rows<N, 4xf32>
}

// -----

// A weight per edge stays inside, and takes what is read with rows that lie in memory anyhow: no
// multiple of these is stored. The sum along src works alike, a sign and a constant leave.
// CHECK-LABEL: func.func @weights
// CHECK: %[[W:.*]] = inter.mul %w, %{{.*}} : !inter.rows<g, f32>
// CHECK-NEXT: %[[M:.*]] = inter.mul %[[W]], %xd : !inter.rows<g, 4xf32>
// CHECK-NEXT: %[[A:.*]] = inter.reduce sum %[[M]] over %g along src : !inter.rows<N, 4xf32>
// CHECK-NEXT: %[[B:.*]] = inter.div %y, %two : !inter.rows<N, f32>
// CHECK-NEXT: %[[C:.*]] = inter.mul %[[B]], %[[A]] : !inter.rows<N, 4xf32>
// CHECK-NEXT: %a = inter.neg %[[C]] : !inter.rows<N, 4xf32>
func.func @weights(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 4xf32>, %y : !inter.rows<N, f32>, %w : !inter.rows<g, f32>) -> !inter.rows<N, 4xf32> {
  %two = inter.const 2.0 : !inter.rows<unit, f32>
  %ys = inter.at %g[src], %y : !inter.rows<g, f32>
  %yd = inter.at %g[dst], %y : !inter.rows<g, f32>
  %n0 = inter.mul %ys, %yd : !inter.rows<g, f32>
  %n1 = inter.div %n0, %two : !inter.rows<g, f32>
  %nc = inter.reshape %n1 : !inter.rows<g, 1xf32>
  %wc = inter.reshape %w : !inter.rows<g, 1xf32>
  %xd = inter.at %g[dst], %x : !inter.rows<g, 4xf32>
  %m0 = inter.mul %nc, %xd : !inter.rows<g, 4xf32>
  %m1 = inter.mul %wc, %m0 : !inter.rows<g, 4xf32>
  %m = inter.neg %m1 : !inter.rows<g, 4xf32>
  %a = inter.reduce sum %m over %g along src : !inter.rows<N, 4xf32>
  func.return %a : !inter.rows<N, 4xf32>
}

// -----

// Rows that nothing else needs are stored multiplied: the edge keeps its own weight alone.
// CHECK-LABEL: func.func @made
// CHECK: %[[S:.*]] = inter.mul %y, %h : !inter.rows<N, 4xf32>
// CHECK-NEXT: %[[D:.*]] = inter.at %g[src], %[[S]]
// CHECK-NEXT: %[[M:.*]] = inter.mul %w, %[[D]] : !inter.rows<g, 4xf32>
// CHECK-NEXT: inter.reduce sum %[[M]] over %g along dst
func.func @made(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 4xf32>, %y : !inter.rows<N, f32>, %w : !inter.rows<g, f32>) -> !inter.rows<N, 4xf32> {
  %h = inter.tanh %x : !inter.rows<N, 4xf32>
  %ys = inter.at %g[src], %y : !inter.rows<g, f32>
  %n = inter.mul %w, %ys : !inter.rows<g, f32>
  %hs = inter.at %g[src], %h : !inter.rows<g, 4xf32>
  %m = inter.mul %n, %hs : !inter.rows<g, 4xf32>
  %a = inter.reduce sum %m over %g along dst : !inter.rows<N, 4xf32>
  func.return %a : !inter.rows<N, 4xf32>
}

// -----

// An outer product with a single number is a multiple of a row.
// CHECK-LABEL: func.func @thin
// CHECK-NOT: inter.contract
// CHECK: %[[M:.*]] = inter.mul %{{.*}}, %{{.*}} : !inter.rows<g, 4x1xf32>
// CHECK-NEXT: %a = inter.reduce sum %[[M]] over %g along dst
func.func @thin(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<g, 4xf32>, %w : !inter.rows<g, 1xf32>) -> !inter.rows<N, 4x1xf32> {
  %m = inter.contract "a,b->ab" %x, %w : !inter.rows<g, 4x1xf32>
  %a = inter.reduce sum %m over %g along dst : !inter.rows<N, 4x1xf32>
  func.return %a : !inter.rows<N, 4x1xf32>
}

// -----

// Where all leave, the sum is a count, and the mean 1 for groups that are not empty.
// CHECK-LABEL: func.func @counts
// CHECK: %[[C:.*]] = inter.count over %g along dst : !inter.rows<N, f32>
// CHECK-NEXT: %s = inter.mul %x, %[[C]] : !inter.rows<N, 4xf32>
// CHECK: %[[ONE:.*]] = inter.const 1.0
// CHECK: %[[N:.*]] = inter.count over %g along dst : !inter.rows<N, f32>
// CHECK: %[[E:.*]] = inter.minimum %[[N]], %[[ONE]] : !inter.rows<N, f32>
// CHECK: %m = inter.mul %x, %[[E]] : !inter.rows<N, 4xf32>
func.func @counts(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 4xf32>) -> (!inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>) {
  %xd = inter.at %g[dst], %x : !inter.rows<g, 4xf32>
  %s = inter.reduce sum %xd over %g along dst : !inter.rows<N, 4xf32>
  %m = inter.reduce mean %xd over %g along dst : !inter.rows<N, 4xf32>
  func.return %s, %m : !inter.rows<N, 4xf32>, !inter.rows<N, 4xf32>
}

// -----

// Kept: max; a factor that may be infinite where no edge is (1 / degree); a divisor that may be 0.
// CHECK-LABEL: func.func @kept
// CHECK: inter.reduce max %m over %g along dst
// CHECK: %i = inter.mul %xs, %invd
// CHECK-NEXT: inter.reduce sum %i over %g along dst
// CHECK-NEXT: %q = inter.div %xs, %degd
// CHECK-NEXT: inter.reduce sum %q over %g along dst
func.func @kept(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, f32>) -> (!inter.rows<N, f32>, !inter.rows<N, f32>, !inter.rows<N, f32>) {
  %one = inter.const 1.0 : !inter.rows<unit, f32>
  %deg = inter.count over %g along dst : !inter.rows<N, f32>
  %inv = inter.div %one, %deg : !inter.rows<N, f32>
  %xs = inter.at %g[src], %x : !inter.rows<g, f32>
  %xd = inter.at %g[dst], %x : !inter.rows<g, f32>
  %degd = inter.at %g[dst], %deg : !inter.rows<g, f32>
  %invd = inter.at %g[dst], %inv : !inter.rows<g, f32>
  %m = inter.mul %xs, %xd : !inter.rows<g, f32>
  %a = inter.reduce max %m over %g along dst : !inter.rows<N, f32>
  %i = inter.mul %xs, %invd : !inter.rows<g, f32>
  %b = inter.reduce sum %i over %g along dst : !inter.rows<N, f32>
  %q = inter.div %xs, %degd : !inter.rows<g, f32>
  %c = inter.reduce sum %q over %g along dst : !inter.rows<N, f32>
  func.return %a, %b, %c : !inter.rows<N, f32>, !inter.rows<N, f32>, !inter.rows<N, f32>
}

// -----

// A divisor that is at least 1 leaves.
// CHECK-LABEL: func.func @clamped
// CHECK: %[[A:.*]] = inter.reduce sum %xs over %g along dst
// CHECK: inter.mul %{{.*}}, %[[A]]
func.func @clamped(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, f32>) -> !inter.rows<N, f32> {
  %one = inter.const 1.0 : !inter.rows<unit, f32>
  %deg = inter.count over %g along dst : !inter.rows<N, f32>
  %safe = inter.maximum %deg, %one : !inter.rows<N, f32>
  %xs = inter.at %g[src], %x : !inter.rows<g, f32>
  %degd = inter.at %g[dst], %safe : !inter.rows<g, f32>
  %q = inter.div %xs, %degd : !inter.rows<g, f32>
  %c = inter.reduce sum %q over %g along dst : !inter.rows<N, f32>
  func.return %c : !inter.rows<N, f32>
}

// -----

// Pairs: a factor read at dst leaves a sum along (dst, rel), the relation's weight leaves both.
// CHECK-LABEL: func.func @pairs
// CHECK: inter.reduce sum %xs over %g along (dst, rel) : !inter.rows<g[dst, rel], f32>
// CHECK: inter.reduce sum %{{.*}} over %g[dst, rel] along dst
func.func @pairs(%N : !inter.set<N>, %R : !inter.set<R>, %g : !inter.set<g, src: N, dst: N, rel: R, pairs (dst, rel)>, %x : !inter.rows<N, f32>, %c : !inter.rows<R, f32>) -> !inter.rows<N, f32> {
  %xs = inter.at %g[src], %x : !inter.rows<g, f32>
  %xd = inter.at %g[dst], %x : !inter.rows<g, f32>
  %cr = inter.at %g[rel], %c : !inter.rows<g, f32>
  %m0 = inter.mul %xs, %xd : !inter.rows<g, f32>
  %m = inter.mul %m0, %cr : !inter.rows<g, f32>
  %a = inter.reduce sum %m over %g along (dst, rel) : !inter.rows<g[dst, rel], f32>
  %o = inter.reduce sum %a over %g[dst, rel] along dst : !inter.rows<N, f32>
  func.return %o : !inter.rows<N, f32>
}

// -----

// The relation's weight over a number, with more relations than edges: a quotient of rows that
// nothing may read would be typed on the whole set, so the sums of the pairs are divided.
// CHECK-LABEL: func.func @pair_quotient
// CHECK: %[[A:.*]] = inter.reduce sum %e over %g along (rel, src) : !inter.rows<g[rel, src], 4xf32>
// CHECK-NEXT: %[[B:.*]] = inter.mul %{{.*}}, %[[A]] : !inter.rows<g[rel, src], 4xf32>
// CHECK-NEXT: %o = inter.div %[[B]], %c : !inter.rows<g[rel, src], 4xf32>
func.func @pair_quotient(%N : !inter.set<N>, %R : !inter.set<R>, %g : !inter.set<g, src: N, dst: N, rel: R, pairs (rel, src)>, %e : !inter.rows<g, 4xf32>, %p : !inter.rows<R, f32>) -> !inter.rows<g[rel, src], 4xf32>
    attributes {inter.stats = {R = 1000 : i64, g = 100 : i64}} {
  %c = inter.const 8.0 : !inter.rows<unit, f32>
  %r = inter.at %g[rel], %p : !inter.rows<g, f32>
  %s = inter.div %r, %c : !inter.rows<g, f32>
  %m = inter.mul %s, %e : !inter.rows<g, 4xf32>
  %o = inter.reduce sum %m over %g along (rel, src) : !inter.rows<g[rel, src], 4xf32>
  func.return %o : !inter.rows<g[rel, src], 4xf32>
}
