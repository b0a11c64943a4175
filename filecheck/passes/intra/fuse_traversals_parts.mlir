// RUN: gnn-opt %s -p fuse-traversals | filecheck %s

// Of twelve numbers a later nest reads four: these are stored.
// CHECK: func.func @part
// CHECK-NOT: memref<?x12xf32>
// CHECK: intra.alloc {domain = #intra.domain<N>} : memref<?x4xf32>
// CHECK-NOT: memref<?x12xf32>
// CHECK: intra.slice {{.*}} lo = 8, hi = 12
func.func @part() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x4xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x3xf32>
  %w = intra.input {buffer = "w"} : memref<?x3x12xf32>
  %t = intra.alloc {domain = #intra.domain<N>} : memref<?x12xf32>
  %s = intra.alloc {domain = #intra.domain<N>} : memref<?x4xf32>
  %size = intra.size {domain = #intra.domain<N>} : index
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %sources = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  intra.traverse %i in %size {
    %a = intra.load %x[%i] : vector<3xf32>
    %b = intra.matmul %a, %w {spec = "k,kf->f"} : vector<12xf32>
    intra.store %b, %t[%i]
    %c = intra.slice %b {dim = 0, lo = 0, hi = 4, step = 1} : vector<4xf32>
    %d = intra.apply %c {fn = "exp"} : vector<4xf32>
    intra.store %d, %s[%i]
  }
  intra.traverse %i in %size {
    %g = intra.segment %p in %offsets[%i] ["sum"] {
      %j = intra.lookup %sources[%p] : index
      %v = intra.load %s[%j] : vector<4xf32>
      intra.yield %v
    } : vector<4xf32>
    %b = intra.load %t[%i] : vector<12xf32>
    %c = intra.slice %b {dim = 0, lo = 8, hi = 12, step = 1} : vector<4xf32>
    %u = intra.apply %c, %g {fn = "mul"} : vector<4xf32>
    intra.store %u, %y[%i]
  }
  func.return
}
