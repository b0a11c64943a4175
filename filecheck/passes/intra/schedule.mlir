// RUN: gnn-opt %s -p "schedule{vector-bytes=32 block=48 grain=1000 chunks=256 row-cost=4 prefetch=16}" --split-input-file | filecheck %s
// RUN: gnn-opt %s -p "schedule{vector-bytes=64 block=24 grain=8192 chunks=100 row-cost=4 prefetch=0}" --split-input-file | filecheck %s --check-prefix=OTHER
// RUN: gnn-opt %s -p schedule --split-input-file | filecheck %s --check-prefix=WIDELY

// A nest without products runs over whole blocks; what the options say is written down.
// CHECK: } {schedule = #intra.schedule<vector_bytes = 32, block = 48, grain = 1000, chunks = 256, row_cost = 4, prefetch = 16, panel = 3, masked = 1>}
// OTHER: } {schedule = #intra.schedule<vector_bytes = 64, block = 24, grain = 8192, chunks = 100, row_cost = 4, prefetch = 0, panel = 4, masked = 1>}
func.func @copy() attributes {intra.phase} {
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

// Rows of 2048 numbers before and after a product: fewer fit into the cache, and each costs more.
// CHECK: } {schedule = #intra.schedule<vector_bytes = 32, block = 6, grain = 1000, chunks = 256, row_cost = 8196, prefetch = 16, panel = 3, masked = 1>}
func.func @wide() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x2048xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x2048xf32>
  %W = intra.input {buffer = "W"} : memref<?x2048x2048xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<2048xf32>
    %b = intra.apply %a {fn = "relu"} : vector<2048xf32>
    %c = intra.matmul %b, %W {spec = "k,kf->f"} : vector<2048xf32>
    intra.store %c, %y[%i]
  }
  func.return
}

// -----

// Each chunk keeps a partial sum of 1024 x 1024 numbers: the memory for them bounds the chunks.
// CHECK: } {schedule = {{.*}} chunks = 4,
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

// Threads may share the columns of a sum of 600 x 64 numbers, after rounds of rows; one of 600 x 200
// is too wide for that, and chunks of rows have partial sums of it.
// CHECK: intra.outer {{.*}} {spec = "k,f->kf"}
// CHECK-NEXT: } {schedule = {{.*}} block = 96, {{.*}} masked = 1, round = 6>}
// CHECK: intra.outer {{.*}} {spec = "k,f->kf"}
// CHECK-NEXT: } {schedule = {{.*}} block = 96, {{.*}} masked = 1>}
func.func @shared_sums() attributes {intra.phase} {
  %s = intra.output {buffer = "s"} : memref<?x600x64xf32>
  %t = intra.output {buffer = "t"} : memref<?x600x200xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x600xf32>
  %y = intra.input {buffer = "y", domain = #intra.domain<N>} : memref<?x64xf32>
  %z = intra.input {buffer = "z", domain = #intra.domain<N>} : memref<?x200xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<600xf32>
    %b = intra.load %y[%i] : vector<64xf32>
    %c = intra.apply %b {fn = "relu"} : vector<64xf32>
    intra.outer %a, %c, %s {spec = "k,f->kf"}
  }
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<600xf32>
    %b = intra.load %z[%i] : vector<200xf32>
    intra.outer %a, %b, %t {spec = "k,f->kf"}
  }
  func.return
}

// -----

// Of a sum of 64 by 7 the 64 are read in vectors: 7 times 8 or 4 of them instead of 64.
// CHECK: intra.outer %d, %a, %s {spec = "lbk,lbf->fbk"}
// OTHER: intra.outer %d, %a, %s {spec = "lbk,lbf->fbk"}
func.func @tall() attributes {intra.phase} {
  %s = intra.output {buffer = "s"} : memref<?x64x2x7xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x3x2x64xf32>
  %y = intra.input {buffer = "y", domain = #intra.domain<N>} : memref<?x3x2x7xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<3x2x64xf32>
    %d = intra.load %y[%i] : vector<3x2x7xf32>
    intra.outer %a, %d, %s {spec = "lbk,lbf->kbf"}
  }
  func.return
}

// -----

// Rows of 60 numbers that lie ready are no copies for that: their last vector leaves the row.
// CHECK: intra.outer %a, %d, %s {spec = "k,f->kf"}
// Where they are computed they lie in whole vectors.
// CHECK: intra.outer %d, %r, %t {spec = "k,f->fk"}
func.func @uneven() attributes {intra.phase} {
  %s = intra.output {buffer = "s"} : memref<?x60x7xf32>
  %t = intra.output {buffer = "t"} : memref<?x60x7xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x60xf32>
  %y = intra.input {buffer = "y", domain = #intra.domain<N>} : memref<?x7xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<60xf32>
    %d = intra.load %y[%i] : vector<7xf32>
    intra.outer %a, %d, %s {spec = "k,f->kf"}
    %r = intra.apply %a {fn = "relu"} : vector<60xf32>
    intra.outer %r, %d, %t {spec = "k,f->kf"}
  }
  func.return
}

// -----

// Rows are asked for as many members before as take 16 KiB, and no more than the option says: here
// 128 numbers and a row of 32 beside them, of which one takes 640 bytes; then 2048, of which the
// least is 8.
// CHECK-LABEL: func.func @gathers
// CHECK: } {schedule = {{.*}} prefetch = 16,
// CHECK: } {schedule = {{.*}} prefetch = 8,
// WIDELY-LABEL: func.func @gathers
// WIDELY: } {schedule = {{.*}} prefetch = 25,
// WIDELY: } {schedule = {{.*}} prefetch = 8,
func.func @gathers() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x128xf32>
  %z = intra.output {buffer = "z", domain = #intra.domain<N>} : memref<?x32xf32>
  %v = intra.output {buffer = "v", domain = #intra.domain<N>} : memref<?x2048xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x128xf32>
  %u = intra.input {buffer = "u", domain = #intra.domain<N>} : memref<?x32xf32>
  %w = intra.input {buffer = "w", domain = #intra.domain<N>} : memref<?x2048xf32>
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %sum, %other = intra.segment %p in %offsets[%i] ["sum", "sum"] {
      %j = intra.lookup %src[%p] : index
      %a = intra.load %x[%j] : vector<128xf32>
      %b = intra.load %u[%j] : vector<32xf32>
      intra.yield %a, %b
    } : vector<128xf32>, vector<32xf32>
    intra.store %sum, %y[%i]
    intra.store %other, %z[%i]
  }
  intra.traverse %i in %n {
    %sum = intra.segment %p in %offsets[%i] ["sum"] {
      %j = intra.lookup %src[%p] : index
      %a = intra.load %w[%j] : vector<2048xf32>
      intra.yield %a
    } : vector<2048xf32>
    intra.store %sum, %v[%i]
  }
  func.return
}
