// RUN: gnn-opt %s -p restrict-rows,dce-sets,verify-sets | filecheck %s

// A layer with a loss on the rows of a mask. Only the edges into these rows are summed, into the
// rows of the mask, and what is done with the sums is done there. What the edges read is needed at
// too many nodes: the product stays. So does the degree, which depends on the graph alone.
// CHECK-LABEL: func.func @layer
func.func @layer(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %k : !inter.rows<N, i1>, %x : !inter.rows<N, 5xf32>, %W : !inter.rows<unit, 5x4xf32>) -> !inter.rows<unit, 4xf32> attributes {inter.stats = {f = 12500 : i64}} {
  // CHECK-NEXT: %d = inter.count over %g along dst : !inter.rows<N, f32>
  // CHECK-NEXT: %n = inter.rsqrt %d {zero = 0.0} : !inter.rows<N, f32>
  // CHECK-NEXT: %z = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 4xf32>
  // CHECK-NEXT: %f = inter.filter %N, %k : !inter.set<f, {{.*}}
  // CHECK-NEXT: [[v0:%.*]] = inter.at %g[dst], %k : !inter.rows<g, i1>
  // CHECK-NEXT: %g_needed = inter.filter %g, [[v0]] : !inter.set<g_needed, {{.*}}
  // CHECK-NEXT: [[v1:%.*]] = inter.iota %f : !inter.rows<f, i64>
  // CHECK-NEXT: [[v2:%.*]] = inter.reduce sum [[v1]] over %f along parent : !inter.rows<N, i64>
  // CHECK-NEXT: [[v3:%.*]] = inter.at %g_needed[dst], [[v2]] : !inter.rows<g_needed, i64>
  // CHECK-NEXT: %g_needed_rows = inter.attach %g_needed (row = [[v3]]) : !inter.set<g_needed_rows, src: N, dst: N, row: f, parent: g_needed mono onto>
  // CHECK-NEXT: %m = inter.at %g_needed_rows[src], %z : !inter.rows<g_needed_rows, 4xf32>
  // CHECK-NEXT: [[v4:%.*]] = inter.at %f[parent], %n : !inter.rows<f, f32>
  // CHECK-NEXT: [[v5:%.*]] = inter.at %g_needed_rows[row], [[v4]] : !inter.rows<g_needed_rows, f32>
  // CHECK-NEXT: %nr = inter.reshape [[v5]] : !inter.rows<g_needed_rows, 1xf32>
  // CHECK-NEXT: %w = inter.mul %nr, %m : !inter.rows<g_needed_rows, 4xf32>
  // CHECK-NEXT: %h = inter.reduce sum %w over %g_needed_rows along row : !inter.rows<f, 4xf32>
  // CHECK-NEXT: %o = inter.relu %h : !inter.rows<f, 4xf32>
  // CHECK-NEXT: %l = inter.reduce sum %o over %f along () : !inter.rows<unit, 4xf32>
  // CHECK-NEXT: func.return %l : !inter.rows<unit, 4xf32>
  %d = inter.count over %g along dst : !inter.rows<N, f32>
  %n = inter.rsqrt %d {zero = 0.0} : !inter.rows<N, f32>
  %ne = inter.at %g[dst], %n : !inter.rows<g, f32>
  %nr = inter.reshape %ne : !inter.rows<g, 1xf32>
  %z = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 4xf32>
  %m = inter.at %g[src], %z : !inter.rows<g, 4xf32>
  %w = inter.mul %nr, %m : !inter.rows<g, 4xf32>
  %h = inter.reduce sum %w over %g along dst : !inter.rows<N, 4xf32>
  %r = inter.relu %h : !inter.rows<N, 4xf32>
  %f = inter.filter %N, %k : !inter.set<f, parent: N mono>
  %o = inter.at %f[parent], %r : !inter.rows<f, 4xf32>
  %l = inter.reduce sum %o over %f along () : !inter.rows<unit, 4xf32>
  func.return %l : !inter.rows<unit, 4xf32>
}

// Two layers, the mask keeps fewer rows: also the first one is computed where it is needed.
// Dropout goes by the numbers of the rows in the whole set.
// CHECK-LABEL: func.func @two_layers
func.func @two_layers(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %k : !inter.rows<N, i1>, %x : !inter.rows<N, 4xf32>, %key : !inter.rows<unit, i64>) -> !inter.rows<unit, 4xf32> attributes {inter.stats = {f = 1000 : i64}} {
  // CHECK-NEXT: %f = inter.filter %N, %k : !inter.set<f, {{.*}}
  // CHECK-NEXT: [[v0:%.*]] = inter.const 0 : !inter.rows<unit, i64>
  // CHECK-NEXT: [[v1:%.*]] = inter.at %g[dst], %k : !inter.rows<g, i1>
  // CHECK-NEXT: %g_needed = inter.filter %g, [[v1]] : !inter.set<g_needed, {{.*}}
  // CHECK-NEXT: [[v2:%.*]] = inter.count over %g_needed along src : !inter.rows<N, i64>
  // CHECK-NEXT: [[v3:%.*]] = inter.gt [[v2]], [[v0]] : !inter.rows<N, i1>
  // CHECK-NEXT: [[v4:%.*]] = inter.logical_or %k, [[v3]] : !inter.rows<N, i1>
  // CHECK-NEXT: %N_needed = inter.filter %N, [[v4]] : !inter.set<N_needed, {{.*}}
  // CHECK-NEXT: [[v5:%.*]] = inter.iota %N_needed : !inter.rows<N_needed, i64>
  // CHECK-NEXT: [[v6:%.*]] = inter.reduce sum [[v5]] over %N_needed along parent : !inter.rows<N, i64>
  // CHECK-NEXT: [[v7:%.*]] = inter.at %f[parent], [[v6]] : !inter.rows<f, i64>
  // CHECK-NEXT: %f_rows = inter.attach %f (needed = [[v7]]) : !inter.set<f_rows, needed: N_needed mono, parent: f mono onto>
  // CHECK-NEXT: [[v8:%.*]] = inter.index %N_needed[parent] : !inter.rows<N_needed, i64>
  // CHECK-NEXT: [[v9:%.*]] = inter.at %g[dst], [[v4]] : !inter.rows<g, i1>
  // CHECK-NEXT: %g_needed_1 = inter.filter %g, [[v9]] : !inter.set<g_needed_1, {{.*}}
  // CHECK-NEXT: [[v10:%.*]] = inter.at %g_needed_1[dst], [[v6]] : !inter.rows<g_needed_1, i64>
  // CHECK-NEXT: %g_needed_1_rows = inter.attach %g_needed_1 (row = [[v10]]) : !inter.set<g_needed_1_rows, src: N, dst: N, row: N_needed, parent: g_needed_1 mono onto>
  // CHECK-NEXT: %a = inter.at %g_needed_1_rows[src], %x : !inter.rows<g_needed_1_rows, 4xf32>
  // CHECK-NEXT: %b = inter.reduce max %a over %g_needed_1_rows along row : !inter.rows<N_needed, 4xf32>
  // CHECK-NEXT: %c = inter.dropout %b, %key over %N_needed as [[v8]] {p = 0.5, site = 0} : !inter.rows<N_needed, 4xf32>
  // CHECK-NEXT: [[v11:%.*]] = inter.at %f_rows[needed], %c : !inter.rows<f_rows, 4xf32>
  // CHECK-NEXT: [[v12:%.*]] = inter.at %g_needed[src], [[v6]] : !inter.rows<g_needed, i64>
  // CHECK-NEXT: [[v13:%.*]] = inter.iota %f : !inter.rows<f, i64>
  // CHECK-NEXT: [[v14:%.*]] = inter.reduce sum [[v13]] over %f along parent : !inter.rows<N, i64>
  // CHECK-NEXT: [[v15:%.*]] = inter.at %g_needed[dst], [[v14]] : !inter.rows<g_needed, i64>
  // CHECK-NEXT: %g_needed_rows = inter.attach %g_needed (row = [[v15]], needed = [[v12]]) : !inter.set<g_needed_rows, src: N, dst: N, row: f_rows, needed: N_needed, parent: g_needed mono onto>
  // CHECK-NEXT: %d = inter.at %g_needed_rows[needed], %c : !inter.rows<g_needed_rows, 4xf32>
  // CHECK-NEXT: %e = inter.reduce mean %d over %g_needed_rows along row : !inter.rows<f_rows, 4xf32>
  // CHECK-NEXT: %s = inter.add %e, [[v11]] : !inter.rows<f_rows, 4xf32>
  // CHECK-NEXT: %o = inter.reduce sum %s over %f_rows along parent : !inter.rows<f, 4xf32>
  // CHECK-NEXT: %l = inter.reduce sum %o over %f along () : !inter.rows<unit, 4xf32>
  // CHECK-NEXT: func.return %l : !inter.rows<unit, 4xf32>
  %a = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  %b = inter.reduce max %a over %g along dst : !inter.rows<N, 4xf32>
  %c = inter.dropout %b, %key over %N {p = 0.5, site = 0} : !inter.rows<N, 4xf32>
  %d = inter.at %g[src], %c : !inter.rows<g, 4xf32>
  %e = inter.reduce mean %d over %g along dst : !inter.rows<N, 4xf32>
  %s = inter.add %e, %c : !inter.rows<N, 4xf32>
  %f = inter.filter %N, %k : !inter.set<f, parent: N mono>
  %o = inter.at %f[parent], %s : !inter.rows<f, 4xf32>
  %l = inter.reduce sum %o over %f along () : !inter.rows<unit, 4xf32>
  func.return %l : !inter.rows<unit, 4xf32>
}

// Attention: the softmax is that of the groups that are needed, all of each.
// CHECK-LABEL: func.func @attention
func.func @attention(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %one : !inter.rows<unit, i64>, %two : !inter.rows<unit, i64>, %x : !inter.rows<N, f32>, %y : !inter.rows<N, f32>) -> !inter.rows<unit, f32> attributes {inter.stats = {f = 12500 : i64}} {
  // CHECK-NEXT: %f = inter.interval %N, %one, %two : !inter.set<f, {{.*}}
  // CHECK-NEXT: [[v0:%.*]] = inter.const 0 : !inter.rows<unit, i64>
  // CHECK-NEXT: [[v1:%.*]] = inter.count over %f along parent : !inter.rows<N, i64>
  // CHECK-NEXT: [[v2:%.*]] = inter.gt [[v1]], [[v0]] : !inter.rows<N, i1>
  // CHECK-NEXT: [[v3:%.*]] = inter.at %g[dst], [[v2]] : !inter.rows<g, i1>
  // CHECK-NEXT: %g_needed = inter.filter %g, [[v3]] : !inter.set<g_needed, {{.*}}
  // CHECK-NEXT: [[v4:%.*]] = inter.iota %f : !inter.rows<f, i64>
  // CHECK-NEXT: [[v5:%.*]] = inter.reduce sum [[v4]] over %f along parent : !inter.rows<N, i64>
  // CHECK-NEXT: [[v6:%.*]] = inter.at %g_needed[dst], [[v5]] : !inter.rows<g_needed, i64>
  // CHECK-NEXT: %g_needed_rows = inter.attach %g_needed (row = [[v6]]) : !inter.set<g_needed_rows, src: N, dst: N, row: f, parent: g_needed mono onto>
  // CHECK-NEXT: %xs = inter.at %g_needed_rows[src], %x : !inter.rows<g_needed_rows, f32>
  // CHECK-NEXT: [[v7:%.*]] = inter.at %f[parent], %y : !inter.rows<f, f32>
  // CHECK-NEXT: %t = inter.tanh [[v7]] : !inter.rows<f, f32>
  // CHECK-NEXT: %ys = inter.at %g_needed_rows[row], %t : !inter.rows<g_needed_rows, f32>
  // CHECK-NEXT: %z = inter.add %xs, %ys : !inter.rows<g_needed_rows, f32>
  // CHECK-NEXT: %p = inter.softmax %z over %g_needed_rows along row : !inter.rows<g_needed_rows, f32>
  // CHECK-NEXT: %m = inter.mul %p, %xs : !inter.rows<g_needed_rows, f32>
  // CHECK-NEXT: %o = inter.reduce sum %m over %g_needed_rows along row : !inter.rows<f, f32>
  // CHECK-NEXT: %l = inter.reduce sum %o over %f along () : !inter.rows<unit, f32>
  // CHECK-NEXT: func.return %l : !inter.rows<unit, f32>
  %t = inter.tanh %y : !inter.rows<N, f32>
  %xs = inter.at %g[src], %x : !inter.rows<g, f32>
  %ys = inter.at %g[dst], %t : !inter.rows<g, f32>
  %z = inter.add %xs, %ys : !inter.rows<g, f32>
  %p = inter.softmax %z over %g along dst : !inter.rows<g, f32>
  %m = inter.mul %p, %xs : !inter.rows<g, f32>
  %h = inter.reduce sum %m over %g along dst : !inter.rows<N, f32>
  %f = inter.interval %N, %one, %two : !inter.set<f, parent: N mono>
  %o = inter.at %f[parent], %h : !inter.rows<f, f32>
  %l = inter.reduce sum %o over %f along () : !inter.rows<unit, f32>
  func.return %l : !inter.rows<unit, f32>
}

// Rows that an index finds, some of them perhaps twice.
// CHECK-LABEL: func.func @index
func.func @index(%N : !inter.set<N>, %S : !inter.set<S>, %i : !inter.set<i, of: N, to: S>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, f32>) -> !inter.rows<S, f32> attributes {inter.stats = {i = 1000 : i64}} {
  // CHECK-NEXT: [[v0:%.*]] = inter.const 0 : !inter.rows<unit, i64>
  // CHECK-NEXT: [[v1:%.*]] = inter.count over %i along of : !inter.rows<N, i64>
  // CHECK-NEXT: [[v2:%.*]] = inter.gt [[v1]], [[v0]] : !inter.rows<N, i1>
  // CHECK-NEXT: %N_needed = inter.filter %N, [[v2]] : !inter.set<N_needed, {{.*}}
  // CHECK-NEXT: [[v3:%.*]] = inter.iota %N_needed : !inter.rows<N_needed, i64>
  // CHECK-NEXT: [[v4:%.*]] = inter.reduce sum [[v3]] over %N_needed along parent : !inter.rows<N, i64>
  // CHECK-NEXT: [[v5:%.*]] = inter.at %i[of], [[v4]] : !inter.rows<i, i64>
  // CHECK-NEXT: %i_rows = inter.attach %i (needed = [[v5]]) : !inter.set<i_rows, of: N, to: S, needed: N_needed onto, parent: i mono onto>
  // CHECK-NEXT: [[v6:%.*]] = inter.at %g[dst], [[v2]] : !inter.rows<g, i1>
  // CHECK-NEXT: %g_needed = inter.filter %g, [[v6]] : !inter.set<g_needed, {{.*}}
  // CHECK-NEXT: [[v7:%.*]] = inter.at %g_needed[dst], [[v4]] : !inter.rows<g_needed, i64>
  // CHECK-NEXT: %g_needed_rows = inter.attach %g_needed (row = [[v7]]) : !inter.set<g_needed_rows, src: N, dst: N, row: N_needed, parent: g_needed mono onto>
  // CHECK-NEXT: %xs = inter.at %g_needed_rows[src], %x : !inter.rows<g_needed_rows, f32>
  // CHECK-NEXT: %h = inter.reduce sum %xs over %g_needed_rows along row : !inter.rows<N_needed, f32>
  // CHECK-NEXT: [[v8:%.*]] = inter.at %i_rows[needed], %h : !inter.rows<i_rows, f32>
  // CHECK-NEXT: %o = inter.reduce sum [[v8]] over %i_rows along parent : !inter.rows<i, f32>
  // CHECK-NEXT: %l = inter.reduce sum %o over %i along to : !inter.rows<S, f32>
  // CHECK-NEXT: func.return %l : !inter.rows<S, f32>
  %xs = inter.at %g[src], %x : !inter.rows<g, f32>
  %h = inter.reduce sum %xs over %g along dst : !inter.rows<N, f32>
  %o = inter.at %i[of], %h : !inter.rows<i, f32>
  %l = inter.reduce sum %o over %i along to : !inter.rows<S, f32>
  func.return %l : !inter.rows<S, f32>
}

// A choice that keeps few rows, as a loss has it that ignores a class, is written by their subset.
// CHECK-LABEL: func.func @choice
func.func @choice(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %k : !inter.rows<N, i1>, %x : !inter.rows<N, 4xf32>) -> !inter.rows<unit, f32> {
  // CHECK: %N_kept = inter.filter %N, %k : !inter.set<N_kept, parent: N mono>
  // CHECK: %h = inter.reduce sum %{{.*}} over %g_needed_rows along row : !inter.rows<N_kept, 4xf32>
  // CHECK-NEXT: [[s:%.*]] = inter.row_reduce sum %h [0] : !inter.rows<N_kept, f32>
  // CHECK-NEXT: %c = inter.reduce sum [[s]] over %N_kept along parent : !inter.rows<N, f32>
  // CHECK-NEXT: %l = inter.reduce sum %c over %N along () : !inter.rows<unit, f32>
  // CHECK-NOT: inter.where
  %0 = inter.const 0.0 : !inter.rows<unit, f32>
  %m = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  %h = inter.reduce sum %m over %g along dst : !inter.rows<N, 4xf32>
  %s = inter.row_reduce sum %h [0] : !inter.rows<N, f32>
  %c = inter.where %k, %s, %0 {inter.kept = 0.0625 : f64} : !inter.rows<N, f32>
  %l = inter.reduce sum %c over %N along () : !inter.rows<unit, f32>
  func.return %l : !inter.rows<unit, f32>
}

// The first nodes of a sampled batch, in which nodes have few edges each: all of these lead to them,
// so the layer before stays as it is. The last one is computed at them alone, and what edges read
// there on the edges that it sums.
// CHECK-LABEL: func.func @batch
func.func @batch(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %lo : !inter.rows<unit, i64>, %n : !inter.rows<unit, i64>, %x : !inter.rows<N, 4xf32>) -> !inter.rows<unit, 4xf32> attributes {inter.stats = {g = 100000 : i64, M = 20000 : i64}} {
  // CHECK: %h = inter.reduce sum %m over %g along dst : !inter.rows<N, 4xf32>
  // CHECK: %a = inter.at %g_needed_rows[src], %t : !inter.rows<g_needed_rows, 4xf32>
  // CHECK: %o = inter.reduce sum %{{.*}} over %g_needed_rows along row : !inter.rows<M, 4xf32>
  %m = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  %h = inter.reduce sum %m over %g along dst : !inter.rows<N, 4xf32>
  %t = inter.tanh %h : !inter.rows<N, 4xf32>
  %a = inter.at %g[src], %t : !inter.rows<g, 4xf32>
  %b = inter.reduce sum %a over %g along dst : !inter.rows<N, 4xf32>
  %M = inter.interval %N, %lo, %n : !inter.set<M, parent: N mono>
  %o = inter.at %M[parent], %b : !inter.rows<M, 4xf32>
  %l = inter.reduce sum %o over %M along () : !inter.rows<unit, 4xf32>
  func.return %l : !inter.rows<unit, 4xf32>
}

// A mask keeps as many nodes anywhere, which have no more edges than others: both layers are
// computed where they are needed.
// CHECK-LABEL: func.func @sparse
func.func @sparse(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %k : !inter.rows<N, i1>, %x : !inter.rows<N, 4xf32>) -> !inter.rows<unit, 4xf32> attributes {inter.stats = {g = 100000 : i64, M = 20000 : i64}} {
  // CHECK: %h = inter.reduce sum %m over %{{.*}} along row : !inter.rows<N_needed, 4xf32>
  // CHECK: %o = inter.reduce sum %{{.*}} over %g_needed_rows along row : !inter.rows<M, 4xf32>
  %m = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  %h = inter.reduce sum %m over %g along dst : !inter.rows<N, 4xf32>
  %t = inter.tanh %h : !inter.rows<N, 4xf32>
  %a = inter.at %g[src], %t : !inter.rows<g, 4xf32>
  %b = inter.reduce sum %a over %g along dst : !inter.rows<N, 4xf32>
  %M = inter.filter %N, %k : !inter.set<M, parent: N mono>
  %o = inter.at %M[parent], %b : !inter.rows<M, 4xf32>
  %l = inter.reduce sum %o over %M along () : !inter.rows<unit, 4xf32>
  func.return %l : !inter.rows<unit, 4xf32>
}

// Rows from the first on keep their numbers: which edges lead there is a comparison.
// CHECK-LABEL: func.func @first
func.func @first(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %n : !inter.rows<unit, i64>, %x : !inter.rows<N, 4xf32>) -> !inter.rows<unit, 4xf32> attributes {inter.stats = {M = 12500 : i64}} {
  // CHECK-NEXT: [[zero:%.*]] = inter.const 0 : !inter.rows<unit, i64>
  // CHECK-NEXT: %M = inter.interval %N, [[zero]], %n : !inter.set<M, {{.*}}
  // CHECK-NEXT: [[count:%.*]] = inter.size %M : !inter.rows<unit, i64>
  // CHECK-NEXT: [[dst:%.*]] = inter.index %g[dst] : !inter.rows<g, i64>
  // CHECK-NEXT: [[led:%.*]] = inter.lt [[dst]], [[count]] : !inter.rows<g, i1>
  // CHECK-NEXT: %g_needed = inter.filter %g, [[led]] : !inter.set<g_needed, {{.*}}
  // CHECK-NEXT: [[numbers:%.*]] = inter.iota %N : !inter.rows<N, i64>
  // CHECK-NEXT: [[row:%.*]] = inter.at %g_needed[dst], [[numbers]] : !inter.rows<g_needed, i64>
  // CHECK-NEXT: %g_needed_rows = inter.attach %g_needed (row = [[row]]) : !inter.set<g_needed_rows, {{.*}}
  // CHECK: %o = inter.reduce sum %m over %g_needed_rows along row : !inter.rows<M, 4xf32>
  %zero = inter.const 0 : !inter.rows<unit, i64>
  %m = inter.at %g[src], %x : !inter.rows<g, 4xf32>
  %h = inter.reduce sum %m over %g along dst : !inter.rows<N, 4xf32>
  %M = inter.interval %N, %zero, %n : !inter.set<M, parent: N mono>
  %o = inter.at %M[parent], %h : !inter.rows<M, 4xf32>
  %l = inter.reduce sum %o over %M along () : !inter.rows<unit, 4xf32>
  func.return %l : !inter.rows<unit, 4xf32>
}
