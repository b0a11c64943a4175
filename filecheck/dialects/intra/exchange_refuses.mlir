// RUN: gnn-opt %s --verify-diagnostics --parsing-diagnostics --split-input-file | filecheck %s

// What is sent and what arrives is left alone from the start to the wait.

// CHECK: the plan 'halo' is started and not awaited: add intra.move_wait
func.func @f() attributes {intra.phase} {
  %x = intra.input {buffer = "x", domain = #intra.domain<R>} : memref<?xf32>
  %from = intra.alloc {domain = #intra.domain<R>} : memref<?xf32>
  %to = intra.alloc {domain = #intra.domain<H>} : memref<?xf32>
  intra.move_start %from, %to {plan = "halo"}
  func.return
}

// -----

// CHECK: the plan 'halo' is not under way: start it first
func.func @f() attributes {intra.phase} {
  %x = intra.input {buffer = "x", domain = #intra.domain<R>} : memref<?xf32>
  %from = intra.alloc {domain = #intra.domain<R>} : memref<?xf32>
  %to = intra.alloc {domain = #intra.domain<H>} : memref<?xf32>
  intra.move_wait %to {plan = "halo"}
  func.return
}

// -----

// CHECK: the plan 'halo' is not under way: start it first
func.func @f() attributes {intra.phase} {
  %x = intra.input {buffer = "x", domain = #intra.domain<R>} : memref<?xf32>
  %from = intra.alloc {domain = #intra.domain<R>} : memref<?xf32>
  %to = intra.alloc {domain = #intra.domain<H>} : memref<?xf32>
  intra.move_start %from, %to {plan = "halo"}
  intra.move_wait %to {plan = "halo"}
  intra.move_wait %to {plan = "halo"}
  func.return
}

// -----

// CHECK: the plan 'halo' is under way already: await it first
func.func @f() attributes {intra.phase} {
  %x = intra.input {buffer = "x", domain = #intra.domain<R>} : memref<?xf32>
  %from = intra.alloc {domain = #intra.domain<R>} : memref<?xf32>
  %to = intra.alloc {domain = #intra.domain<H>} : memref<?xf32>
  %other = intra.alloc {domain = #intra.domain<H>} : memref<?xf32>
  intra.move_start %from, %to {plan = "halo"}
  intra.move_start %from, %other {plan = "halo"}
  intra.move_wait %to {plan = "halo"}
  func.return
}

// -----

// CHECK: what is awaited is another buffer than arrives
func.func @f() attributes {intra.phase} {
  %x = intra.input {buffer = "x", domain = #intra.domain<R>} : memref<?xf32>
  %from = intra.alloc {domain = #intra.domain<R>} : memref<?xf32>
  %to = intra.alloc {domain = #intra.domain<H>} : memref<?xf32>
  %other = intra.alloc {domain = #intra.domain<H>} : memref<?xf32>
  intra.move_start %from, %to {plan = "halo"}
  intra.move_wait %other {plan = "halo"}
  func.return
}

// -----

// CHECK: intra.traverse writes what is being sent: move it behind intra.move_wait
func.func @f() attributes {intra.phase} {
  %x = intra.input {buffer = "x", domain = #intra.domain<R>} : memref<?xf32>
  %from = intra.alloc {domain = #intra.domain<R>} : memref<?xf32>
  %to = intra.alloc {domain = #intra.domain<H>} : memref<?xf32>
  %r = intra.size {domain = #intra.domain<R>} : index
  intra.move_start %from, %to {plan = "halo"}
  intra.traverse %i in %r {
    %v = intra.load %x[%i] : f32
    intra.store %v, %from[%i]
  }
  intra.move_wait %to {plan = "halo"}
  func.return
}

// -----

// CHECK: intra.traverse reads rows before they have arrived: move it behind intra.move_wait
func.func @f() attributes {intra.phase} {
  %x = intra.input {buffer = "x", domain = #intra.domain<R>} : memref<?xf32>
  %from = intra.alloc {domain = #intra.domain<R>} : memref<?xf32>
  %to = intra.alloc {domain = #intra.domain<H>} : memref<?xf32>
  %h = intra.size {domain = #intra.domain<H>} : index
  %y = intra.output {buffer = "y", domain = #intra.domain<H>} : memref<?xf32>
  intra.move_start %from, %to {plan = "halo"}
  intra.traverse %i in %h {
    %v = intra.load %to[%i] : f32
    intra.store %v, %y[%i]
  }
  intra.move_wait %to {plan = "halo"}
  func.return
}

// -----

// CHECK: intra.traverse writes where rows of others arrive: give the move a buffer of its own
func.func @f() attributes {intra.phase} {
  %x = intra.input {buffer = "x", domain = #intra.domain<R>} : memref<?xf32>
  %from = intra.alloc {domain = #intra.domain<R>} : memref<?xf32>
  %to = intra.alloc {domain = #intra.domain<H>} : memref<?xf32>
  %h = intra.size {domain = #intra.domain<H>} : index
  %y = intra.output {buffer = "y", domain = #intra.domain<H>} : memref<?xf32>
  intra.move_start %from, %to {plan = "halo"}
  intra.move_wait %to {plan = "halo"}
  %z = intra.input {buffer = "z", domain = #intra.domain<H>} : memref<?xf32>
  intra.traverse %i in %h {
    %v = intra.load %z[%i] : f32
    intra.store %v, %to[%i]
  }
  func.return
}

// -----

// CHECK: intra.move_start writes where rows of others arrive: give the move a buffer of its own
func.func @f() attributes {intra.phase} {
  %x = intra.input {buffer = "x", domain = #intra.domain<R>} : memref<?xf32>
  %from = intra.alloc {domain = #intra.domain<R>} : memref<?xf32>
  %to = intra.alloc {domain = #intra.domain<H>} : memref<?xf32>
  intra.move_start %from, %to {plan = "halo"}
  intra.move_wait %to {plan = "halo"}
  intra.move_start %from, %to {plan = "more"}
  intra.move_wait %to {plan = "more"}
  func.return
}

// -----

// CHECK: what arrives has the type of what is sent, memref<?xf32>, not memref<?x2xf32>
func.func @f() attributes {intra.phase} {
  %x = intra.input {buffer = "x", domain = #intra.domain<R>} : memref<?xf32>
  %from = intra.alloc {domain = #intra.domain<R>} : memref<?xf32>
  %to = intra.alloc {domain = #intra.domain<H>} : memref<?x2xf32>
  intra.move_start %from, %to {plan = "halo"}
  intra.move_wait %to {plan = "halo"}
  func.return
}

// -----

// CHECK: a move is between the rows of sets: use intra.all_reduce for single rows
func.func @f() attributes {intra.phase} {
  %x = intra.input {buffer = "x", domain = #intra.domain<R>} : memref<?xf32>
  %from = intra.alloc {domain = #intra.domain<R>} : memref<?xf32>
  %to = intra.alloc : memref<?xf32>
  intra.move_start %from, %to {plan = "halo"}
  intra.move_wait %to {plan = "halo"}
  func.return
}

// -----

// CHECK: a move needs two buffers
func.func @f() attributes {intra.phase} {
  %x = intra.input {buffer = "x", domain = #intra.domain<R>} : memref<?xf32>
  %from = intra.alloc {domain = #intra.domain<R>} : memref<?xf32>
  %to = intra.alloc {domain = #intra.domain<H>} : memref<?xf32>
  intra.move_start %from, %from {plan = "halo"}
  intra.move_wait %from {plan = "halo"}
  func.return
}

// -----

// CHECK: inputs and tables are only read: write to an intra.output or intra.alloc
func.func @f() attributes {intra.phase} {
  %x = intra.input {buffer = "x", domain = #intra.domain<R>} : memref<?xf32>
  %from = intra.alloc {domain = #intra.domain<R>} : memref<?xf32>
  %to = intra.alloc {domain = #intra.domain<H>} : memref<?xf32>
  intra.move_start %from, %x {plan = "halo"}
  intra.move_wait %x {plan = "halo"}
  func.return
}

// -----

// CHECK: intra.all_reduce stands in a nest: move it to the phase, above the nest
func.func @f() attributes {intra.phase} {
  %a = intra.alloc : memref<?xf32>
  %one = intra.size : index
  intra.traverse %i in %one {
    intra.all_reduce %a {kind = "sum"}
  }
  func.return
}

// -----

// CHECK: kind 'mean' is none of sum, max, min, mul
func.func @f() attributes {intra.phase} {
  %a = intra.alloc : memref<?xf32>
  intra.all_reduce %a {kind = "mean"}
  func.return
}

// -----

// CHECK: a buffer is named twice: drop one
func.func @f() attributes {intra.phase} {
  %a = intra.alloc : memref<?xf32>
  intra.all_reduce %a, %a {kind = "sum"}
  func.return
}

// -----

// CHECK: name the buffers that are reduced
func.func @f() attributes {intra.phase} {
  intra.all_reduce {kind = "sum"}
  func.return
}

// -----

// CHECK: truth values are not reduced: cast them to numbers first
func.func @f() attributes {intra.phase} {
  %a = intra.alloc : memref<?xi1>
  intra.all_reduce %a {kind = "max"}
  func.return
}
