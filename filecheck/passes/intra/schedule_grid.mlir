// RUN: gnn-opt %s -p "schedule-grid" --split-input-file | filecheck %s
// RUN: gnn-opt %s -p "schedule-grid{threads=64 lanes=4 rows=5 grain=16 chunks=7 row-cost=9 piece=3 edges=2 resident=1}" --split-input-file | filecheck %s --check-prefix=FORCED

// A row of 3 numbers is less than a vector of 16 bytes: a thread computes it alone, 256 rows a block.
// CHECK-LABEL: func.func @narrow(
// CHECK: } {schedule = #intra.grid<threads = 256, lanes = 1, rows = 256, grain = 2048, chunks = 1056, row_cost = 4, piece = 128, edges = 4, resident = 2>}
// FORCED-LABEL: func.func @narrow(
// FORCED: #intra.grid<threads = 64, lanes = 4, rows = 16, grain = 16, chunks = 7, row_cost = 9, piece = 3, edges = 2, resident = 1>
func.func @narrow() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x3xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x3xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<3xf32>
    intra.store %a, %y[%i]
  }
  func.return
}

// -----

// As many lanes as the row has vectors, up to the next power of two: 10 vectors, 16 lanes.
// CHECK-LABEL: func.func @lanes(
// CHECK: } {schedule = #intra.grid<threads = 256, lanes = 16, rows = 16, grain = 2048, chunks = 1056, row_cost = 4, piece = 128, edges = 4, resident = 2>}
// FORCED-LABEL: func.func @lanes(
// FORCED: lanes = 4, rows = 16
func.func @lanes() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x40xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x40xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<40xf32>
    intra.store %a, %y[%i]
  }
  func.return
}

// -----

// No more than a warp, each lane with up to 8 vectors. 128 numbers are as much work as an edge.
// CHECK-LABEL: func.func @warp(
// CHECK: } {schedule = #intra.grid<threads = 256, lanes = 32, rows = 8, grain = 2048, chunks = 1056, row_cost = 12, piece = 128, edges = 4, resident = 2>}
func.func @warp() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x1024xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x1024xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<1024xf32>
    intra.store %a, %y[%i]
  }
  func.return
}

// -----

// A row that a warp does not hold in registers is computed by the block.
// CHECK-LABEL: func.func @block(
// CHECK: } {schedule = #intra.grid<threads = 256, lanes = 256, rows = 1, grain = 2048, chunks = 1056, row_cost = 12, piece = 128, edges = 4, resident = 2>}
// FORCED-LABEL: func.func @block(
// FORCED: threads = 64, lanes = 64, rows = 1
func.func @block() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x1028xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x1028xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<1028xf32>
    intra.store %a, %y[%i]
  }
  func.return
}

// -----

// A single row is computed by one block, of no more threads than it has vectors.
// CHECK-LABEL: func.func @single(
// CHECK: } {schedule = #intra.grid<threads = 64, lanes = 64, rows = 1, grain = 2048, chunks = 1056, row_cost = 5, piece = 128, edges = 4, resident = 2>}
func.func @single() attributes {intra.phase} {
  %y = intra.output {buffer = "y"} : memref<?x200xf32>
  %x = intra.input {buffer = "x"} : memref<?x200xf32>
  %n = intra.size : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<200xf32>
    intra.store %a, %y[%i]
  }
  func.return
}

// -----

// That of a single number still takes a warp.
// CHECK-LABEL: func.func @single_number(
// CHECK: } {schedule = #intra.grid<threads = 32, lanes = 32, rows = 1, grain = 2048, chunks = 1056, row_cost = 4, piece = 128, edges = 4, resident = 2>}
func.func @single_number() attributes {intra.phase} {
  %y = intra.output {buffer = "y"} : memref<?x1xf32>
  %x = intra.input {buffer = "x"} : memref<?x1xf32>
  %n = intra.size : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<1xf32>
    intra.store %a, %y[%i]
  }
  func.return
}

// -----

// The longest row decides, here the one that is gathered.
// CHECK-LABEL: func.func @longest(
// CHECK: } {schedule = #intra.grid<threads = 256, lanes = 8, rows = 32, grain = 2048, chunks = 1056, row_cost = 4, piece = 128, edges = 4, resident = 2>}
func.func @longest() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x32xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  intra.traverse %i in %n {
    %s = intra.segment %p in %offsets[%i] ["sum"] {
      %j = intra.lookup %src[%p] : index
      %v = intra.load %x[%j] : vector<32xf32>
      %m = intra.fold %v {kind = "sum", dims = [0]} : f32
      intra.yield %m
    } : f32
    intra.store %s, %y[%i]
  }
  func.return
}

// -----

// Rows of a product go through shared memory, 64 at a time; its work counts for a row's.
// CHECK-LABEL: func.func @product(
// CHECK: } {schedule = #intra.grid<threads = 256, lanes = 8, rows = 64, grain = 2048, chunks = 1056, row_cost = 6, piece = 128, edges = 4, resident = 2>}
func.func @product() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x32xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x32xf32>
  %W = intra.input {buffer = "W"} : memref<?x32x32xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<32xf32>
    %b = intra.apply %a {fn = "relu"} : vector<32xf32>
    %c = intra.matmul %b, %W {spec = "k,kf->f"} : vector<32xf32>
    intra.store %c, %y[%i]
  }
  func.return
}

// -----

// Of 512 numbers before and after it 24 KB hold only 6 rows: a power of two is kept.
// CHECK-LABEL: func.func @wide_product(
// CHECK: } {schedule = #intra.grid<threads = 256, lanes = 32, rows = 4, grain = 2048, chunks = 1056, row_cost = 520, piece = 128, edges = 4, resident = 2>}
func.func @wide_product() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x512xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x512xf32>
  %W = intra.input {buffer = "W"} : memref<?x512x512xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<512xf32>
    %b = intra.apply %a {fn = "relu"} : vector<512xf32>
    %c = intra.matmul %b, %W {spec = "k,kf->f"} : vector<512xf32>
    intra.store %c, %y[%i]
  }
  func.return
}

// -----

// Rows that a product reads where they lie take no room, and decide no lanes.
// CHECK-LABEL: func.func @read_where_it_lies(
// CHECK: } {schedule = #intra.grid<threads = 256, lanes = 1, rows = 64, grain = 2048, chunks = 1056, row_cost = 8, piece = 128, edges = 4, resident = 2>}
func.func @read_where_it_lies() attributes {intra.phase} {
  %s = intra.output {buffer = "s"} : memref<?x64x32xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x64xf32>
  %d = intra.input {buffer = "d", domain = #intra.domain<N>} : memref<?x32xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<64xf32>
    %b = intra.load %d[%i] : vector<32xf32>
    intra.outer %a, %b, %s {spec = "k,f->kf"}
  }
  func.return
}

// -----

// Each block keeps a sum of 1024 x 1024 numbers: the memory for them bounds the blocks.
// CHECK-LABEL: func.func @large_sums(
// CHECK: } {schedule = #intra.grid<threads = 256, lanes = 1, rows = 64, grain = 2048, chunks = 15, row_cost = 2052, piece = 128, edges = 4, resident = 2>}
func.func @large_sums() attributes {intra.phase} {
  %s = intra.output {buffer = "s"} : memref<?x1024x1024xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x1024xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<1024xf32>
    intra.outer %a, %a, %s {spec = "k,f->kf"}
  }
  func.return
}

// -----

// Rows that only a product reads, but that are gathered for it, are loaded by lanes.
// CHECK-LABEL: func.func @gathered(
// CHECK: } {schedule = #intra.grid<threads = 256, lanes = 16, rows = 64, {{.*}}>}
func.func @gathered() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x8xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<M>} : memref<?x64xf32>
  %W = intra.input {buffer = "W"} : memref<?x64x8xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %map = intra.index_map {domain = #intra.domain<N>, path = "m"} : memref<?xi32>
  intra.traverse %i in %n {
    %j = intra.lookup %map[%i] : index
    %a = intra.load %x[%j] : vector<64xf32>
    %b = intra.matmul %a, %W {spec = "k,kf->f"} : vector<8xf32>
    intra.store %b, %y[%i]
  }
  func.return
}
