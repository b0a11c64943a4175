// RUN: gnn-opt %s -p "schedule-grid,cut-stages" -t cuda | filecheck %s

func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x32xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x32xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  intra.traverse %i in %n {
    %s = intra.segment %p in %offsets[%i] ["sum"] {
      %j = intra.lookup %src[%p] : index
      %v = intra.load %x[%j] : vector<32xf32>
      intra.yield %v
    } : vector<32xf32>
    intra.store %s, %y[%i]
  }
  func.return
}

func.func @backward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<g>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %members = intra.members {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi32>
  intra.traverse %i in %n {
    %s = intra.segment %p in %offsets[%i] ["max"] {
      %j = intra.lookup %members[%p] : index
      %v = intra.load %x[%j] : f32
      intra.yield %v
    } : f32
    intra.store %s, %y[%i]
  }
  func.return
}
