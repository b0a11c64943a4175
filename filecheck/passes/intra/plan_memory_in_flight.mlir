// RUN: gnn-opt %s -p plan-memory | filecheck %s

// Both buffers of a move are in use from its start to its wait, so what is computed meanwhile has a
// place of its own; what is computed later may lie where the rows were sent from.
// CHECK: %from = intra.alloc {domain = #intra.domain<R>, first = 0, last = 3} : memref<?xf32>
// CHECK-NEXT: %to = intra.alloc {domain = #intra.domain<R>, first = 1, last = 5} : memref<?xf32>
// CHECK-NEXT: %a = intra.alloc {domain = #intra.domain<R>, first = 2, last = 4} : memref<?xf32>
// CHECK-NEXT: %b = intra.alloc {domain = #intra.domain<R>, first = 4, last = 5} : memref<?xf32>
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<R>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<R>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<R>} : index
  %from = intra.alloc {domain = #intra.domain<R>} : memref<?xf32>
  %to = intra.alloc {domain = #intra.domain<R>} : memref<?xf32>
  %a = intra.alloc {domain = #intra.domain<R>} : memref<?xf32>
  %b = intra.alloc {domain = #intra.domain<R>} : memref<?xf32>
  intra.traverse %i in %n {
    %v = intra.load %x[%i] : f32
    intra.store %v, %from[%i]
  }
  intra.move_start %from, %to {plan = "halo"}
  intra.traverse %i in %n {
    %v = intra.load %x[%i] : f32
    intra.store %v, %a[%i]
  }
  intra.move_wait %to {plan = "halo"}
  intra.traverse %i in %n {
    %v = intra.load %a[%i] : f32
    intra.store %v, %b[%i]
  }
  intra.traverse %i in %n {
    %v = intra.load %b[%i] : f32
    %w = intra.load %to[%i] : f32
    %s = intra.apply %v, %w {fn = "add"} : f32
    intra.store %s, %y[%i]
  }
  func.return
}
