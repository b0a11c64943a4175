// RUN: gnn-opt %s -p update-in-place --split-input-file | filecheck %s

// An argument is not overwritten while it is being sent ..
// CHECK-LABEL: func.func @in_flight
// CHECK: intra.output {buffer = "new_w"
func.func @in_flight() attributes {intra.phase, intra.updates = {new_w = "w"}} {
  %o = intra.output {buffer = "new_w", domain = #intra.domain<R>} : memref<?xf32>
  %y = intra.output {buffer = "y", domain = #intra.domain<H>} : memref<?xf32>
  %w = intra.input {buffer = "w", domain = #intra.domain<R>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<R>} : index
  intra.move_start %w, %y {plan = "halo"}
  intra.traverse %i in %n {
    %a = intra.load %w[%i] : f32
    %b = intra.apply %a {fn = "neg"} : f32
    intra.store %b, %o[%i]
  }
  intra.move_wait %y {plan = "halo"}
  func.return
}

// -----

// .. and is afterwards.
// CHECK-LABEL: func.func @arrived
// CHECK-NOT: intra.output {buffer = "new_w"
// CHECK: intra.input {buffer = "w", domain = #intra.domain<R>, gives = "new_w"}
func.func @arrived() attributes {intra.phase, intra.updates = {new_w = "w"}} {
  %o = intra.output {buffer = "new_w", domain = #intra.domain<R>} : memref<?xf32>
  %y = intra.output {buffer = "y", domain = #intra.domain<H>} : memref<?xf32>
  %w = intra.input {buffer = "w", domain = #intra.domain<R>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<R>} : index
  intra.move_start %w, %y {plan = "halo"}
  intra.move_wait %y {plan = "halo"}
  intra.traverse %i in %n {
    %a = intra.load %w[%i] : f32
    %b = intra.apply %a {fn = "neg"} : f32
    intra.store %b, %o[%i]
  }
  func.return
}
