// RUN: gnn-opt %s -p "schedule{vector-bytes=32},cut-stages" --split-input-file | filecheck %s

// Ops before, between and behind two products: what crosses is yielded, a look-up is made again.
// CHECK: intra.traverse %i in %n {
// CHECK-NEXT: %h = intra.stage {
// CHECK-NEXT: %u = intra.lookup %src[%i] : index
// CHECK-NEXT: %a = intra.load %x[%u] : vector<8xf32>
// CHECK-NEXT: %h_1 = intra.apply %a {fn = "relu"} : vector<8xf32>
// CHECK-NEXT: intra.yield %h_1
// CHECK-NEXT: } : vector<8xf32>
// CHECK-NEXT: %c = intra.matmul %h, %W {spec = "k,kf->f"} : vector<8xf32>
// CHECK-NEXT: intra.stage {
// CHECK-NEXT: %u_1 = intra.lookup %src[%i] : index
// CHECK-NEXT: %a_1 = intra.load %x[%u_1] : vector<8xf32>
// CHECK-NEXT: %d = intra.apply %c, %a_1 {fn = "add"} : vector<8xf32>
// CHECK-NEXT: intra.store %d, %y[%i]
// CHECK-NEXT: intra.yield
// CHECK-NEXT: }
func.func @cross() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<g>} : memref<?x8xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x8xf32>
  %W = intra.input {buffer = "W"} : memref<?x8x8xf32>
  %n = intra.size {domain = #intra.domain<g>} : index
  %src = intra.index_map {domain = #intra.domain<g>, path = "src"} : memref<?xi32>
  intra.traverse %i in %n {
    %u = intra.lookup %src[%i] : index
    %a = intra.load %x[%u] : vector<8xf32>
    %h = intra.apply %a {fn = "relu"} : vector<8xf32>
    %c = intra.matmul %h, %W {spec = "k,kf->f"} : vector<8xf32>
    %d = intra.apply %c, %a {fn = "add"} : vector<8xf32>
    intra.store %d, %y[%i]
  }
  func.return
}

// -----

// A product that reads the nest's own rows and is only stored reads and writes the buffers. Its
// matrix has 7 columns, no whole number of vectors: it is packed.
// CHECK: intra.traverse %i in %n {
// CHECK-NEXT: %a = intra.load %x[%i] : vector<5xf32>
// CHECK-NEXT: %b = intra.matmul %a, %W {spec = "k,kf->f", packed} : vector<7xf32>
// CHECK-NEXT: intra.store %b, %y[%i]
// CHECK-NEXT: } {schedule
func.func @in_place() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x7xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x5xf32>
  %W = intra.input {buffer = "W"} : memref<?x5x7xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<5xf32>
    %b = intra.matmul %a, %W {spec = "k,kf->f"} : vector<7xf32>
    intra.store %b, %y[%i]
  }
  func.return
}

// -----

// Outer products read the right operand in whole vectors: 7 numbers are copied, 5 are read in place.
// CHECK: %b = intra.stage {
// CHECK-NEXT: %b_1 = intra.load %y[%i] : vector<7xf32>
// CHECK-NEXT: intra.yield %b_1
// CHECK: %a = intra.load %x[%i] : vector<5xf32>
// CHECK-NEXT: intra.outer %a, %b, %s
func.func @padded() attributes {intra.phase} {
  %s = intra.output {buffer = "s"} : memref<?x5x7xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x5xf32>
  %y = intra.input {buffer = "y", domain = #intra.domain<N>} : memref<?x7xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<5xf32>
    %b = intra.load %y[%i] : vector<7xf32>
    intra.outer %a, %b, %s {spec = "k,f->kf"}
  }
  func.return
}

// -----

// A group whose members say all is reduced in pieces where it is long; one that needs what the nest
// computed for its row is not.
// CHECK: func.func @alone
// CHECK: intra.segment %p in %in[%i] ["sum"] in_pieces {
// CHECK: func.func @with_row
// CHECK: intra.segment %p in %in[%i] ["sum"] {
func.func @alone() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<g>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %in = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %edges = intra.members {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi32>
  intra.traverse %i in %n {
    %s = intra.segment %p in %in[%i] ["sum"] {
      %e = intra.lookup %edges[%p] : index
      %a = intra.load %x[%e] : f32
      intra.yield %a
    } : f32
    intra.store %s, %y[%i]
  }
  func.return
}
func.func @with_row() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<g>} : memref<?xf32>
  %z = intra.input {buffer = "z", domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %in = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %edges = intra.members {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi32>
  intra.traverse %i in %n {
    %b = intra.load %z[%i] : f32
    %s = intra.segment %p in %in[%i] ["sum"] {
      %e = intra.lookup %edges[%p] : index
      %a = intra.load %x[%e] : f32
      %c = intra.apply %a, %b {fn = "mul"} : f32
      intra.yield %c
    } : f32
    intra.store %s, %y[%i]
  }
  func.return
}

// -----

// A short row waits for its greatest number in a stage of its own, in which those of other rows are
// found meanwhile. A long row has enough to do, and one that is only stored waits for nothing.
// CHECK: func.func @short
// CHECK: %a, %m = intra.stage {
// CHECK: intra.fold %{{.*}} {kind = "max", dims = [0]} : f32
// CHECK-NEXT: intra.yield
// CHECK: intra.stage {
// CHECK-NEXT: intra.apply %a, %m {fn = "sub"}
// CHECK: func.func @long
// CHECK: intra.stage {
// CHECK-NOT: intra.stage {
func.func @short() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x7xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x7xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %b = intra.load %x[%i] : vector<7xf32>
    %a = intra.apply %b {fn = "relu"} : vector<7xf32>
    %m = intra.fold %a {kind = "max", dims = [0]} : f32
    %c = intra.apply %a, %m {fn = "sub"} : vector<7xf32>
    intra.store %c, %y[%i]
  }
  func.return
}
func.func @long() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x700xf32>
  %z = intra.output {buffer = "z", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x700xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %b = intra.load %x[%i] : vector<700xf32>
    %a = intra.apply %b {fn = "relu"} : vector<700xf32>
    %m = intra.fold %a {kind = "max", dims = [0]} : f32
    %c = intra.apply %a, %m {fn = "sub"} : vector<700xf32>
    intra.store %c, %y[%i]
    %d = intra.slice %b {dim = 0, lo = 0, hi = 7, step = 1} : vector<7xf32>
    %s = intra.fold %d {kind = "sum", dims = [0]} : f32
    intra.store %s, %z[%i]
  }
  func.return
}

// -----

// A row is stored over another behind all that read the old one, also in a later stage.
// CHECK: intra.traverse %i in %n {
// CHECK-NEXT: %a, %b = intra.stage {
// CHECK-NEXT: %x_row = intra.load %x[%i] : vector<5xf32>
// CHECK-NEXT: %a_1 = intra.fold %x_row {kind = "sum", dims = [0]} : f32
// CHECK-NEXT: %b_1 = intra.apply %x_row {fn = "neg"} : vector<5xf32>
// CHECK-NEXT: intra.yield %a_1, %b_1
// CHECK-NEXT: } : f32, vector<5xf32>
// CHECK-NEXT: intra.stage {
// CHECK-NEXT: %old = intra.load %w[%i] : vector<5xf32>
// CHECK-NEXT: %c = intra.apply %old, %a {fn = "mul"} : vector<5xf32>
// CHECK-NEXT: intra.store %c, %y[%i]
// CHECK-NEXT: intra.store %b, %w[%i]
// CHECK-NEXT: intra.yield
// CHECK-NEXT: }
func.func @over_a_row_that_is_read() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x5xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x5xf32>
  %w = intra.input {buffer = "w", domain = #intra.domain<N>, gives = "new_w"} : memref<?x5xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %x_row = intra.load %x[%i] : vector<5xf32>
    %a = intra.fold %x_row {kind = "sum", dims = [0]} : f32
    %old = intra.load %w[%i] : vector<5xf32>
    %c = intra.apply %old, %a {fn = "mul"} : vector<5xf32>
    intra.store %c, %y[%i]
    %b = intra.apply %x_row {fn = "neg"} : vector<5xf32>
    intra.store %b, %w[%i]
  }
  func.return
}
