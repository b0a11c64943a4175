// RUN: gnn-opt %s -p update-in-place --split-input-file | filecheck %s

// A new parameter takes the place of the old one, also through views, which become one.
// CHECK-LABEL: func.func @step
// CHECK-NOT: intra.output
// CHECK: %w = intra.input {buffer = "w", gives = "new_w"} : memref<?x8x4xf32>
// CHECK: %[[V:.*]] = intra.view %w {pieces = 8}
// CHECK-NOT: intra.view
// CHECK: intra.load %[[V]]
// CHECK: intra.store %{{.*}}, %[[V]]
func.func @step() attributes {intra.phase, intra.updates = {new_w = "w"}} {
  %o = intra.output {buffer = "new_w"} : memref<?x8x4xf32>
  %w = intra.input {buffer = "w"} : memref<?x8x4xf32>
  %n = intra.pieces {count = 8} : index
  %v = intra.view %w {pieces = 8} : memref<?x4xf32>
  %u = intra.view %o {pieces = 8} : memref<?x4xf32>
  intra.traverse %i in %n {
    %a = intra.load %v[%i] : vector<4xf32>
    %b = intra.apply %a {fn = "neg"} : vector<4xf32>
    intra.store %b, %u[%i]
  }
  func.return
}

// -----

// An earlier nest may read any row, and an output may come before its argument.
// CHECK-LABEL: func.func @earlier
// CHECK: intra.input {buffer = "w", domain = #intra.domain<N>, gives = "new_w"}
func.func @earlier() attributes {intra.phase, intra.updates = {new_w = "w"}} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x4xf32>
  %o = intra.output {buffer = "new_w", domain = #intra.domain<N>} : memref<?x4xf32>
  %w = intra.input {buffer = "w", domain = #intra.domain<N>} : memref<?x4xf32>
  %m = intra.index_map {domain = #intra.domain<N>, path = "next"} : memref<?xi32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %j = intra.lookup %m[%i] : index
    %a = intra.load %w[%j] : vector<4xf32>
    intra.store %a, %y[%i]
  }
  intra.traverse %i in %n {
    %a = intra.load %w[%i] : vector<4xf32>
    %b = intra.apply %a {fn = "neg"} : vector<4xf32>
    intra.store %b, %o[%i]
  }
  func.return
}

// -----

// A nest that reads other rows than its own needs the old ones, and so does one that comes later.
// CHECK-LABEL: func.func @others
// CHECK-NOT: gives
func.func @others() attributes {intra.phase, intra.updates = {new_w = "w", new_x = "x"}} {
  %o = intra.output {buffer = "new_w", domain = #intra.domain<N>} : memref<?x4xf32>
  %p = intra.output {buffer = "new_x", domain = #intra.domain<N>} : memref<?x4xf32>
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x4xf32>
  %w = intra.input {buffer = "w", domain = #intra.domain<N>} : memref<?x4xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x4xf32>
  %m = intra.index_map {domain = #intra.domain<N>, path = "next"} : memref<?xi32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %j = intra.lookup %m[%i] : index
    %a = intra.load %w[%j] : vector<4xf32>
    intra.store %a, %o[%i]
    %b = intra.load %x[%i] : vector<4xf32>
    %c = intra.apply %b {fn = "neg"} : vector<4xf32>
    intra.store %c, %p[%i]
  }
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<4xf32>
    intra.store %a, %y[%i]
  }
  func.return
}

// -----

// Two arguments that change places: the first store would destroy what the second reads, so that
// one stays apart.
// CHECK-LABEL: func.func @swap
// CHECK: intra.output {buffer = "new_a"}
// CHECK-NOT: intra.output
// CHECK: intra.input {buffer = "b", gives = "new_b"}
func.func @swap() attributes {intra.phase, intra.updates = {new_a = "a", new_b = "b"}} {
  %o = intra.output {buffer = "new_a"} : memref<?x4xf32>
  %p = intra.output {buffer = "new_b"} : memref<?x4xf32>
  %a = intra.input {buffer = "a"} : memref<?x4xf32>
  %b = intra.input {buffer = "b"} : memref<?x4xf32>
  %n = intra.size : index
  intra.traverse %i in %n {
    %x = intra.load %a[%i] : vector<4xf32>
    %y = intra.load %b[%i] : vector<4xf32>
    intra.store %y, %o[%i]
    intra.store %x, %p[%i]
  }
  func.return
}

// -----

// A product runs in a stage of its own, after what is stored before it; a sum of all rows is there
// when all have read.
// CHECK-LABEL: func.func @stages
// CHECK-NOT: gives
func.func @stages() attributes {intra.phase, intra.updates = {new_w = "w", new_s = "s"}} {
  %o = intra.output {buffer = "new_w", domain = #intra.domain<N>} : memref<?x4xf32>
  %t = intra.output {buffer = "new_s"} : memref<?x4xf32>
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x4xf32>
  %w = intra.input {buffer = "w", domain = #intra.domain<N>} : memref<?x4xf32>
  %s = intra.input {buffer = "s"} : memref<?x4xf32>
  %W = intra.input {buffer = "W"} : memref<?x4x4xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %w[%i] : vector<4xf32>
    %b = intra.matmul %a, %W {spec = "k,kf->f"} : vector<4xf32>
    intra.store %b, %y[%i]
    %f = intra.first : index
    %d = intra.load %s[%f] : vector<4xf32>
    %c = intra.apply %a, %d {fn = "add"} : vector<4xf32>
    intra.store %c, %o[%i]
    intra.total %c, %t {kind = "sum"}
  }
  func.return
}

// -----

// A large dot writes where its result is to lie, before it has read all; rows of integers and truth
// values are copied out of turn.
// CHECK-LABEL: func.func @early
// CHECK-NOT: gives
func.func @early() attributes {intra.phase, intra.updates = {new_w = "w", new_m = "m"}} {
  %o = intra.output {buffer = "new_w"} : memref<?x64x64xf32>
  %p = intra.output {buffer = "new_m", domain = #intra.domain<N>} : memref<?x4xi1>
  %w = intra.input {buffer = "w"} : memref<?x64x64xf32>
  %M = intra.input {buffer = "M"} : memref<?x64x64xf32>
  %m = intra.input {buffer = "m", domain = #intra.domain<N>} : memref<?x4xi1>
  %one = intra.size : index
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %one {
    %a = intra.load %w[%i] : vector<64x64xf32>
    %b = intra.load %M[%i] : vector<64x64xf32>
    %c = intra.dot %a, %b {spec = "ij,jk->ik"} : vector<64x64xf32>
    intra.store %c, %o[%i]
  }
  intra.traverse %i in %n {
    %a = intra.load %m[%i] : vector<4xi1>
    %b = intra.apply %a {fn = "logical_not"} : vector<4xi1>
    intra.store %b, %p[%i]
  }
  func.return
}

// -----

// What a later phase reads stays as it was, and what it saves is a tensor of its own.
// CHECK-LABEL: func.func @forward
// CHECK-NOT: gives
func.func @forward() attributes {intra.phase, intra.updates = {new_w = "w"}} {
  %o = intra.output {buffer = "new_w"} : memref<?x4xf32>
  %w = intra.input {buffer = "w"} : memref<?x4xf32>
  %n = intra.size : index
  intra.traverse %i in %n {
    %a = intra.load %w[%i] : vector<4xf32>
    %b = intra.apply %a {fn = "neg"} : vector<4xf32>
    intra.store %b, %o[%i]
  }
  func.return
}
func.func @backward() attributes {intra.phase} {
  %o = intra.output {buffer = "d"} : memref<?x4xf32>
  %w = intra.input {buffer = "w"} : memref<?x4xf32>
  %n = intra.size : index
  intra.traverse %i in %n {
    %a = intra.load %w[%i] : vector<4xf32>
    intra.store %a, %o[%i]
  }
  func.return
}

// -----

// CHECK-LABEL: func.func @forward
// CHECK-NOT: gives
func.func @forward() attributes {intra.phase, intra.updates = {new_w = "w"}} {
  %o = intra.output {buffer = "new_w"} : memref<?x4xf32>
  %w = intra.input {buffer = "w"} : memref<?x4xf32>
  %n = intra.size : index
  intra.traverse %i in %n {
    %a = intra.load %w[%i] : vector<4xf32>
    %b = intra.apply %a {fn = "neg"} : vector<4xf32>
    intra.store %b, %o[%i]
  }
  func.return
}
func.func @backward() attributes {intra.phase} {
  %o = intra.output {buffer = "d"} : memref<?x4xf32>
  %w = intra.input {buffer = "new_w"} : memref<?x4xf32>
  %n = intra.size : index
  intra.traverse %i in %n {
    %a = intra.load %w[%i] : vector<4xf32>
    intra.store %a, %o[%i]
  }
  func.return
}

// -----

// A temporary lies in what is written by the nest that is the last to read it, number by number.
// CHECK-LABEL: func.func @temporary
// CHECK-NOT: intra.alloc
// CHECK: intra.store %{{.*}}, %y
// CHECK: intra.load %y
// CHECK: intra.store %{{.*}}, %y
func.func @temporary() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x4xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x4xf32>
  %near = intra.alloc {domain = #intra.domain<N>} : memref<?x4xf32>
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %source = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<4xf32>
    %b = intra.apply %a {fn = "neg"} : vector<4xf32>
    intra.store %b, %near[%i]
  }
  intra.traverse %i in %n {
    %s = intra.segment %p in %offsets[%i] ["sum"] {
      %j = intra.lookup %source[%p] : index
      %a = intra.load %x[%j] : vector<4xf32>
      intra.yield %a
    } : vector<4xf32>
    %b = intra.load %near[%i] : vector<4xf32>
    %c = intra.apply %s, %b {fn = "add"} : vector<4xf32>
    intra.store %c, %y[%i]
  }
  func.return
}

// -----

// What a product or another row reads of it is needed as a whole.
// CHECK-LABEL: func.func @needed
// CHECK: %near = intra.alloc
// CHECK: %far = intra.alloc
func.func @needed() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x4xf32>
  %z = intra.output {buffer = "z", domain = #intra.domain<N>} : memref<?x4xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x4xf32>
  %w = intra.input {buffer = "w"} : memref<?x4x4xf32>
  %near = intra.alloc {domain = #intra.domain<N>} : memref<?x4xf32>
  %far = intra.alloc {domain = #intra.domain<N>} : memref<?x4xf32>
  %m = intra.index_map {domain = #intra.domain<N>, path = "next"} : memref<?xi32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<4xf32>
    %b = intra.apply %a {fn = "neg"} : vector<4xf32>
    intra.store %b, %near[%i]
    intra.store %b, %far[%i]
  }
  intra.traverse %i in %n {
    %a = intra.load %near[%i] : vector<4xf32>
    %b = intra.matmul %a, %w {spec = "k,fk->f"} : vector<4xf32>
    intra.store %b, %y[%i]
  }
  intra.traverse %i in %n {
    %j = intra.lookup %m[%i] : index
    %a = intra.load %far[%j] : vector<4xf32>
    %b = intra.apply %a {fn = "neg"} : vector<4xf32>
    intra.store %b, %z[%i]
  }
  func.return
}
