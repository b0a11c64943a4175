// RUN: gnn-opt %s | filecheck %s
// RUN: GNN_ROUNDTRIP
// RUN: GNN_GENERIC_ROUNDTRIP

// Every op as it is written, and as it is printed without its own syntax.

// CHECK-LABEL: func.func @bindings() attributes {intra.phase}
// CHECK-GENERIC: sym_name = "bindings"
func.func @bindings() attributes {intra.phase} {
  // CHECK-NEXT: %one = intra.size : index
  // CHECK-GENERIC-NEXT: %one = "intra.size"() : () -> index
  %one = intra.size : index
  // CHECK-NEXT: %n = intra.size {domain = #intra.domain<N>} : index
  // CHECK-GENERIC-NEXT: %n = "intra.size"() <{domain = #intra.domain<N>}> : () -> index
  %n = intra.size {domain = #intra.domain<N>} : index
  // CHECK-NEXT: %p = intra.size {domain = #intra.domain<g[rel, src]>} : index
  %p = intra.size {domain = #intra.domain<g[rel, src]>} : index
  // CHECK-NEXT: %np = intra.sum_sizes %n, %p : index
  %np = intra.sum_sizes %n, %p : index
  // CHECK-NEXT: %m = intra.index_map {domain = #intra.domain<g>, path = "src.parent"} : memref<?xi32>
  %m = intra.index_map {domain = #intra.domain<g>, path = "src.parent"} : memref<?xi32>
  // CHECK-NEXT: %i = intra.pair_index {domain = #intra.domain<g[rel, src]>} : memref<?xi32>
  %i = intra.pair_index {domain = #intra.domain<g[rel, src]>} : memref<?xi32>
  // CHECK-NEXT: %o = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  // CHECK-GENERIC: %o = "intra.offsets"() <{domain = #intra.domain<g>, along = ["dst"]}> : () -> memref<?xi64>
  %o = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  // CHECK-NEXT: %k = intra.members {domain = #intra.domain<g>, along = ["dst", "rel"]} : memref<?xi32>
  %k = intra.members {domain = #intra.domain<g>, along = ["dst", "rel"]} : memref<?xi32>
  // CHECK-NEXT: %q = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  %q = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  // CHECK-NEXT: %w = intra.witness {domain = #intra.domain<g>, along = ["rel", "src"]} : memref<?xi32>
  %w = intra.witness {domain = #intra.domain<g>, along = ["rel", "src"]} : memref<?xi32>
  // CHECK-NEXT: %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x8x4xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x8x4xf32>
  // CHECK-NEXT: %v = intra.view %x {domain = #intra.domain<N>} : memref<?x32xf32>
  %v = intra.view %x {domain = #intra.domain<N>} : memref<?x32xf32>
  // CHECK-NEXT: %pn = intra.pieces {count = 4} : index
  // CHECK-GENERIC: %pn = "intra.pieces"() <{count = #builtin.int<4>}> : () -> index
  %pn = intra.pieces {count = 4} : index
  // CHECK-NEXT: %lone = intra.input {buffer = "lone"} : memref<?x8x4xf32>
  %lone = intra.input {buffer = "lone"} : memref<?x8x4xf32>
  // CHECK-NEXT: %pv = intra.view %lone {pieces = 4} : memref<?x8xf32>
  %pv = intra.view %lone {pieces = 4} : memref<?x8xf32>
  // CHECK-NEXT: %y = intra.output {buffer = "y"} : memref<?xi64>
  %y = intra.output {buffer = "y"} : memref<?xi64>
  // CHECK-NEXT: %t = intra.table {value = [1.000000e+00 : f64, 2.000000e+00 : f64]} : memref<?x2xf64>
  %t = intra.table {value = [1.0, 2.0]} : memref<?x2xf64>
  // CHECK-NEXT: %a = intra.alloc {domain = #intra.domain<N>, first = 1, last = 3} : memref<?x2xi1>
  // CHECK-GENERIC: %a = "intra.alloc"() <{domain = #intra.domain<N>, first = #builtin.int<1>, last = #builtin.int<3>}> : () -> memref<?x2xi1>
  %a = intra.alloc {domain = #intra.domain<N>, first = 1, last = 3} : memref<?x2xi1>
  // CHECK-NEXT: %b = intra.part %a, %n : memref<?x2xi1>
  %b = intra.part %a, %n : memref<?x2xi1>
  // CHECK-NEXT: %c = intra.part %a : memref<?x2xi1>
  %c = intra.part %a : memref<?x2xi1>
  // CHECK-NEXT: %d = intra.columns %a {first = 1} : memref<?xi1>
  %d = intra.columns %a {first = 1} : memref<?xi1>
  func.return
}

// CHECK-LABEL: func.func @rows()
// CHECK-GENERIC: sym_name = "rows"
func.func @rows() attributes {intra.phase} {
  %n = intra.size {domain = #intra.domain<N>} : index
  %map = intra.index_map {domain = #intra.domain<N>, path = "tag"} : memref<?xi32>
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %members = intra.members {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x2x3xf64>
  %e = intra.input {buffer = "e", domain = #intra.domain<g>} : memref<?x3xf64>
  %W = intra.input {buffer = "W"} : memref<?x3x5xf64>
  %key = intra.input {buffer = "key"} : memref<?xi64>
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x2x5xf64>
  %s = intra.output {buffer = "s"} : memref<?x3x5xf64>
  %t = intra.output {buffer = "t"} : memref<?xf64>
  // CHECK: intra.traverse %r in %n {
  // CHECK-GENERIC: "intra.traverse"(%n) <{schedule = #intra.schedule<vector_bytes = 32, block = 48, grain = 8192, chunks = 256, row_cost = 4, prefetch = 32, panel = 3>}> ({
  // CHECK-GENERIC-NEXT: ^bb0(%r: index):
  intra.traverse %r in %n {
    // CHECK-NEXT: %u = intra.lookup %map[%r] : index
    // CHECK-GENERIC-NEXT: %u = "intra.lookup"(%map, %r) : (memref<?xi32>, index) -> index
    %u = intra.lookup %map[%r] : index
    // CHECK-NEXT: %f = intra.first : index
    %f = intra.first : index
    // CHECK-NEXT: %i = intra.position %u : i64
    %i = intra.position %u : i64
    // CHECK-NEXT: %c = intra.count %n : i64
    %c = intra.count %n : i64
    // CHECK-NEXT: %l = intra.length %offsets[%r] : i64
    %l = intra.length %offsets[%r] : i64
    // CHECK-NEXT: %a = intra.load %x[%r] : vector<2x3xf64>
    %a = intra.load %x[%r] : vector<2x3xf64>
    // CHECK-NEXT: %b = intra.load %x[%u] else %a : vector<2x3xf64>
    // CHECK-GENERIC: %b = "intra.load"(%x, %u, %a) : (memref<?x2x3xf64>, index, vector<2x3xf64>) -> vector<2x3xf64>
    %b = intra.load %x[%u] else %a : vector<2x3xf64>
    // CHECK-NEXT: %k = intra.load %key[%f] : i64
    %k = intra.load %key[%f] : i64
    // CHECK-NEXT: %z = intra.const {value = 0.000000e+00 : f64} : vector<3xf64>
    %z = intra.const {value = 0.0 : f64} : vector<3xf64>
    // CHECK-NEXT: %d = intra.apply %b, %z {fn = "maximum"} : vector<2x3xf64>
    // CHECK-GENERIC: %d = "intra.apply"(%b, %z) <{fn = "maximum"}> : (vector<2x3xf64>, vector<3xf64>) -> vector<2x3xf64>
    %d = intra.apply %b, %z {fn = "maximum"} : vector<2x3xf64>
    // CHECK-NEXT: %g = intra.apply %d {fn = "leaky_relu", params = {slope = 2.000000e-01 : f64}} : vector<2x3xf64>
    %g = intra.apply %d {fn = "leaky_relu", params = {slope = 0.2 : f64}} : vector<2x3xf64>
    // CHECK-NEXT: %h = intra.cast %l : f64
    %h = intra.cast %l : f64
    // CHECK-NEXT: %rr = intra.reshape %g : vector<6xf64>
    %rr = intra.reshape %g : vector<6xf64>
    // CHECK-NEXT: %bb = intra.broadcast %z : vector<2x3xf64>
    %bb = intra.broadcast %z : vector<2x3xf64>
    // CHECK-NEXT: %tt = intra.transpose %bb {perm = [1, 0]} : vector<3x2xf64>
    // CHECK-GENERIC: %tt = "intra.transpose"(%bb) <{perm = [#builtin.int<1>, #builtin.int<0>]}>
    %tt = intra.transpose %bb {perm = [1, 0]} : vector<3x2xf64>
    // CHECK-NEXT: %ss = intra.slice %rr {dim = 0, lo = 1, hi = 6, step = 2} : vector<3xf64>
    %ss = intra.slice %rr {dim = 0, lo = 1, hi = 6, step = 2} : vector<3xf64>
    // CHECK-NEXT: %cc = intra.concat %ss, %z {dim = 0} : vector<6xf64>
    %cc = intra.concat %ss, %z {dim = 0} : vector<6xf64>
    // CHECK-NEXT: %ff = intra.fold %g {kind = "max", dims = [0]} : vector<3xf64>
    %ff = intra.fold %g {kind = "max", dims = [0]} : vector<3xf64>
    // CHECK-NEXT: %dd = intra.dot %ff, %ss {spec = "k,k->"} : f64
    %dd = intra.dot %ff, %ss {spec = "k,k->"} : f64
    // CHECK-NEXT: %oo = intra.dropout %g, %k, %r {p = 5.000000e-01 : f64, site = 0 : i64} : vector<2x3xf64>
    %oo = intra.dropout %g, %k, %r {p = 0.5 : f64, site = 0 : i64} : vector<2x3xf64>
    // CHECK-NEXT: %on = intra.dropout %g, %k, %k {p = 5.000000e-01 : f64, site = 0 : i64} : vector<2x3xf64>
    %on = intra.dropout %g, %k, %k {p = 0.5 : f64, site = 0 : i64} : vector<2x3xf64>
    // CHECK-NEXT: %m, %m2 = intra.segment %p in %offsets[%r] ["sum", "max"] {
    // CHECK-GENERIC: %m, %m2 = "intra.segment"(%offsets, %r) <{kinds = ["sum", "max"]}> ({
    // CHECK-GENERIC-NEXT: ^bb0(%p: index):
    %m, %m2 = intra.segment %p in %offsets[%r] ["sum", "max"] {
      // CHECK-NEXT: %j = intra.lookup %members[%p] : index
      %j = intra.lookup %members[%p] : index
      // CHECK-NEXT: %v = intra.load %e[%j] : vector<3xf64>
      %v = intra.load %e[%j] : vector<3xf64>
      // CHECK-NEXT: %w = intra.fold %v {kind = "sum", dims = [0]} : f64
      %w = intra.fold %v {kind = "sum", dims = [0]} : f64
      // CHECK-NEXT: intra.yield %v, %w
      // CHECK-GENERIC: "intra.yield"(%v, %w) : (vector<3xf64>, f64) -> ()
      intra.yield %v, %w
      // CHECK-NEXT: } : vector<3xf64>, f64
    } : vector<3xf64>, f64
    // CHECK-NEXT: %yy = intra.matmul %oo, %W {spec = "lk,kf->lf"} : vector<2x5xf64>
    %yy = intra.matmul %oo, %W {spec = "lk,kf->lf"} : vector<2x5xf64>
    // CHECK-NEXT: intra.store %yy, %y[%r]
    // CHECK-GENERIC: "intra.store"(%yy, %y, %r) : (vector<2x5xf64>, memref<?x2x5xf64>, index) -> ()
    intra.store %yy, %y[%r]
    // CHECK-NEXT: intra.outer %oo, %yy, %s {spec = "lk,lf->kf"}
    intra.outer %oo, %yy, %s {spec = "lk,lf->kf"}
    // CHECK-NEXT: intra.total %m2, %t {kind = "min"}
    intra.total %m2, %t {kind = "min"}
    // CHECK-NEXT: } {schedule = #intra.schedule<vector_bytes = 32, block = 48, grain = 8192, chunks = 256, row_cost = 4, prefetch = 32, panel = 3>}
  } {schedule = #intra.schedule<vector_bytes = 32, block = 48, grain = 8192, chunks = 256, row_cost = 4, prefetch = 32, panel = 3>}
  func.return
}
