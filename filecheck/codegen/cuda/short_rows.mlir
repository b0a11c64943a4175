func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x32xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x32xf32>
  %e = intra.input {buffer = "e", domain = #intra.domain<g>} : memref<?x2xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %members = intra.members {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi32>
  intra.traverse %i in %n {
    %s = intra.segment %p in %offsets[%i] ["sum"] {
      %j = intra.lookup %members[%p] : index
      %v = intra.load %e[%j] : vector<2xf32>
      intra.yield %v
    } : vector<2xf32>
    %t = intra.fold %s {kind = "max", dims = [0]} : f32
    %a = intra.load %x[%i] : vector<32xf32>
    %b = intra.apply %a, %t {fn = "mul"} : vector<32xf32>
    intra.store %b, %y[%i]
  }
  func.return
}
