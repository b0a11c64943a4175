// RUN: gnn-opt %s -p 'overlap-exchanges{hide=false}' | filecheck %s

// A message between ranks of one machine is awaited where it starts: near and far rows are summed
// behind it, and the outer product of what was summed comes with it, before a later message.
// CHECK-LABEL: func.func @forward()
// CHECK: intra.store %{{.*}}, %from
// CHECK: intra.move_start %from, %to {plan = "halo"}
// CHECK-NEXT: intra.move_wait %to {plan = "halo"}
// CHECK: intra.store %{{.*}}, %near
// CHECK: intra.outer
// CHECK: intra.store %{{.*}}, %y
// CHECK: intra.store %{{.*}}, %back
// CHECK: intra.move_start %back, %home {plan = "back"}
// CHECK-NEXT: intra.move_wait %home {plan = "back"}
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x2xf64>
  %w = intra.output {buffer = "w"} : memref<?x2x2xf64>
  %z = intra.output {buffer = "z", domain = #intra.domain<R>} : memref<?x2xf64>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x2xf64>
  %n = intra.size {domain = #intra.domain<N>} : index
  %r = intra.size {domain = #intra.domain<R>} : index
  %h = intra.size {domain = #intra.domain<H>} : index
  %owner = intra.index_map {domain = #intra.domain<R>, path = "owner"} : memref<?xi32>
  %far = intra.index_map {domain = #intra.domain<N>, path = "far"} : memref<?xi32>
  %reader = intra.index_map {domain = #intra.domain<H>, path = "reader"} : memref<?xi32>
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %source = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  %near = intra.alloc {domain = #intra.domain<N>} : memref<?x2xf64>
  %from = intra.alloc {domain = #intra.domain<R>} : memref<?x2xf64>
  %to = intra.alloc {domain = #intra.domain<H>} : memref<?x2xf64>
  %back = intra.alloc {domain = #intra.domain<H>} : memref<?x2xf64>
  %home = intra.alloc {domain = #intra.domain<R>} : memref<?x2xf64>
  intra.traverse %i in %n {
    %v = intra.segment %p in %offsets[%i] ["sum"] {
      %j = intra.lookup %source[%p] : index
      %u = intra.load %x[%j] : vector<2xf64>
      intra.yield %u
    } : vector<2xf64>
    intra.store %v, %near[%i]
  }
  intra.traverse %i in %r {
    %j = intra.lookup %owner[%i] : index
    %v = intra.load %x[%j] : vector<2xf64>
    intra.store %v, %from[%i]
  }
  intra.move_start %from, %to {plan = "halo"}
  intra.move_wait %to {plan = "halo"}
  intra.traverse %i in %h {
    %j = intra.lookup %reader[%i] : index
    %v = intra.load %to[%i] : vector<2xf64>
    %u = intra.load %near[%j] : vector<2xf64>
    %a = intra.apply %v, %u {fn = "add"} : vector<2xf64>
    intra.store %a, %back[%i]
  }
  intra.move_start %back, %home {plan = "back"}
  intra.move_wait %home {plan = "back"}
  intra.traverse %i in %n {
    %j = intra.lookup %far[%i] : index
    %v = intra.load %to[%j] : vector<2xf64>
    %u = intra.load %near[%i] : vector<2xf64>
    %a = intra.apply %v, %u {fn = "add"} : vector<2xf64>
    intra.outer %u, %a, %w {spec = "k,f->kf"}
    intra.store %a, %y[%i]
  }
  intra.traverse %i in %r {
    %v = intra.load %home[%i] : vector<2xf64>
    intra.store %v, %z[%i]
  }
  func.return
}
