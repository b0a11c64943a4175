// RUN: gnn-opt %s -p schedule | filecheck %s
// RUN: gnn-opt %s -p "schedule{prefetch=0}" | filecheck %s --check-prefix=ALONE

// While products of a block run, rows that the next one gathers are asked for: as many as 128 KiB
// hold of the rows of 64 and of 4 numbers. A nest without products has nothing to do meanwhile.
// CHECK: intra.matmul
// CHECK: } {schedule = {{.*}} round = 0, meanwhile = 481>}
// CHECK: } {schedule = {{.*}} masked = 1>}
// ALONE: } {schedule = {{.*}} masked = 1>}
// ALONE: } {schedule = {{.*}} masked = 1>}
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x8xf32>
  %t = intra.output {buffer = "t", domain = #intra.domain<N>} : memref<?x64xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x64xf32>
  %a = intra.input {buffer = "a", domain = #intra.domain<N>} : memref<?x4xf32>
  %W = intra.input {buffer = "W"} : memref<?x64x8xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  intra.traverse %i in %n {
    %s, %u = intra.segment %p in %offsets[%i] ["sum", "sum"] {
      %j = intra.lookup %src[%p] : index
      %v = intra.load %a[%j] : vector<4xf32>
      %w = intra.load %x[%j] : vector<64xf32>
      intra.yield %w, %v
    } : vector<64xf32>, vector<4xf32>
    %z = intra.matmul %s, %W {spec = "k,kf->f"} : vector<8xf32>
    intra.store %z, %y[%i]
  }
  intra.traverse %i in %n {
    %s = intra.segment %p in %offsets[%i] ["sum"] {
      %j = intra.lookup %src[%p] : index
      %w = intra.load %x[%j] : vector<64xf32>
      intra.yield %w
    } : vector<64xf32>
    intra.store %s, %t[%i]
  }
  func.return
}
