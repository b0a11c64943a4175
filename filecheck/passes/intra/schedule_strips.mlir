// RUN: gnn-opt %s -p "schedule{vector-bytes=64}" --split-input-file | filecheck %s
// RUN: gnn-opt %s -p "schedule{vector-bytes=16}" --split-input-file | filecheck %s --check-prefix=SHORT

// A number of each edge goes through an exponential: that of several edges fits into one vector, if
// vectors are long enough for it to pay.
// CHECK: intra.segment %p in %in[%i] ["sum", "sum"] in_strips {
// SHORT: intra.segment %p in %in[%i] ["sum", "sum"] {
func.func @scores() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x5xf32>
  %t = intra.output {buffer = "t", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x5xf32>
  %a = intra.input {buffer = "a", domain = #intra.domain<g>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %in = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %edges = intra.members {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi32>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  intra.traverse %i in %n {
    %s, %z = intra.segment %p in %in[%i] ["sum", "sum"] {
      %e = intra.lookup %edges[%p] : index
      %j = intra.lookup %src[%p] : index
      %b = intra.load %a[%e] : f32
      %w = intra.apply %b {fn = "exp"} : f32
      %c = intra.load %x[%j] : vector<5xf32>
      %d = intra.apply %w, %c {fn = "mul"} : vector<5xf32>
      intra.yield %d, %w
    } : vector<5xf32>, f32
    intra.store %s, %y[%i]
    intra.store %z, %t[%i]
  }
  func.return
}

// -----

// A few weights times rows are no reason; nor are products of numbers, which are not kept by lane.
// CHECK-NOT: in_strips
func.func @weights() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %z = intra.output {buffer = "z", domain = #intra.domain<N>} : memref<?xf32>
  %a = intra.input {buffer = "a", domain = #intra.domain<g>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %in = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %edges = intra.members {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi32>
  intra.traverse %i in %n {
    %s = intra.segment %p in %in[%i] ["sum"] {
      %e = intra.lookup %edges[%p] : index
      %b = intra.load %a[%e] : f32
      %c = intra.apply %b, %b {fn = "mul"} : f32
      intra.yield %c
    } : f32
    %t = intra.segment %q in %in[%i] ["mul"] {
      %e = intra.lookup %edges[%q] : index
      %b = intra.load %a[%e] : f32
      %c = intra.apply %b {fn = "exp"} : f32
      intra.yield %c
    } : f32
    intra.store %s, %y[%i]
    intra.store %t, %z[%i]
  }
  func.return
}

// -----

// Pairs have few edges each.
// CHECK: func.func @pairs
// CHECK-NOT: in_strips
func.func @pairs() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<g[dst, rel]>} : memref<?xf32>
  %a = intra.input {buffer = "a", domain = #intra.domain<g>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<g[dst, rel]>} : index
  %in = intra.offsets {domain = #intra.domain<g>, along = ["dst", "rel"]} : memref<?xi64>
  %edges = intra.members {domain = #intra.domain<g>, along = ["dst", "rel"]} : memref<?xi32>
  intra.traverse %i in %n {
    %s = intra.segment %p in %in[%i] ["sum"] {
      %e = intra.lookup %edges[%p] : index
      %b = intra.load %a[%e] : f32
      %c = intra.apply %b {fn = "exp"} : f32
      intra.yield %c
    } : f32
    intra.store %s, %y[%i]
  }
  func.return
}
