// RUN: gnn-opt %s -p split-long-rows --split-input-file | filecheck %s

// A long single row is computed in pieces. What is short is read from its only row, and computed for
// each piece again; what is done with it stays, and so do short rows.
// CHECK-LABEL: func.func @scale
// CHECK: %[[N:.*]] = intra.pieces {count = 8}
// CHECK: %[[X:.*]] = intra.view %x {pieces = 8} : memref<?x4096xf32>
// CHECK: %[[Y:.*]] = intra.view %y {pieces = 8} : memref<?x4096xf32>
// CHECK: intra.traverse %[[I:.*]] in %[[N]] {
// CHECK-NEXT: %[[FIRST:.*]] = intra.first
// CHECK-NEXT: %[[A:.*]] = intra.load %[[X]][%[[I]]] : vector<4096xf32>
// CHECK-NEXT: %[[S:.*]] = intra.load %s[%[[FIRST]]] : vector<2xf32>
// CHECK-NEXT: %[[S1:.*]] = intra.slice %[[S]]
// CHECK-NEXT: %[[ONE:.*]] = intra.reshape %[[S1]] : vector<1x1x1xf32>
// CHECK-NEXT: %[[FACTOR:.*]] = intra.reshape %[[ONE]] : f32
// CHECK-NEXT: %[[P:.*]] = intra.apply %[[A]], %[[FACTOR]] {fn = "mul"} : vector<4096xf32>
// CHECK-NEXT: intra.store %[[P]], %[[Y]][%[[I]]]
// CHECK: intra.traverse %{{.*}} in %one {
// CHECK-NOT: 8x64x64
// CHECK: intra.store %{{.*}}, %t
func.func @scale() attributes {intra.phase} {
  %y = intra.output {buffer = "y"} : memref<?x8x64x64xf32>
  %t = intra.output {buffer = "t"} : memref<?x2xf32>
  %x = intra.input {buffer = "x"} : memref<?x8x64x64xf32>
  %s = intra.input {buffer = "s"} : memref<?x2xf32>
  %one = intra.size : index
  intra.traverse %i in %one {
    %a = intra.load %x[%i] : vector<8x64x64xf32>
    %b = intra.load %s[%i] : vector<2xf32>
    %c = intra.slice %b {dim = 0, lo = 1, hi = 2, step = 1} : vector<1xf32>
    %d = intra.reshape %c : vector<1x1x1xf32>
    %e = intra.apply %a, %d {fn = "mul"} : vector<8x64x64xf32>
    intra.store %e, %y[%i]
    %f = intra.apply %b, %b {fn = "add"} : vector<2xf32>
    intra.store %f, %t[%i]
  }
  func.return
}

// -----

// A row that reduces is no row of pieces, nor one that a shorter one is repeated in.
// CHECK-LABEL: func.func @stays
// CHECK-NOT: intra.pieces
func.func @stays() attributes {intra.phase} {
  %y = intra.output {buffer = "y"} : memref<?x512x64xf32>
  %z = intra.output {buffer = "z"} : memref<?x512x64xf32>
  %x = intra.input {buffer = "x"} : memref<?x512x64xf32>
  %b = intra.input {buffer = "b"} : memref<?x64xf32>
  %one = intra.size : index
  intra.traverse %i in %one {
    %a = intra.load %x[%i] : vector<512x64xf32>
    %s = intra.fold %a {kind = "sum", dims = [0, 1]} : f32
    %c = intra.apply %a, %s {fn = "sub"} : vector<512x64xf32>
    intra.store %c, %y[%i]
  }
  intra.traverse %i in %one {
    %a = intra.load %x[%i] : vector<512x64xf32>
    %r = intra.load %b[%i] : vector<64xf32>
    %c = intra.apply %a, %r {fn = "add"} : vector<512x64xf32>
    intra.store %c, %z[%i]
  }
  func.return
}

// -----

// Neither do nests over a set, nor rows too short to be worth it or without divisors.
// CHECK-LABEL: func.func @short
// CHECK-NOT: intra.pieces
func.func @short() attributes {intra.phase} {
  %u = intra.output {buffer = "u", domain = #intra.domain<N>} : memref<?x32768xf32>
  %v = intra.output {buffer = "v"} : memref<?x64x64xf32>
  %w = intra.output {buffer = "w"} : memref<?x32771xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x32768xf32>
  %y = intra.input {buffer = "y"} : memref<?x64x64xf32>
  %z = intra.input {buffer = "z"} : memref<?x32771xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %one = intra.size : index
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<32768xf32>
    %b = intra.apply %a {fn = "neg"} : vector<32768xf32>
    intra.store %b, %u[%i]
  }
  intra.traverse %i in %one {
    %a = intra.load %y[%i] : vector<64x64xf32>
    %b = intra.apply %a {fn = "neg"} : vector<64x64xf32>
    intra.store %b, %v[%i]
    %c = intra.load %z[%i] : vector<32771xf32>
    %d = intra.apply %c {fn = "neg"} : vector<32771xf32>
    intra.store %d, %w[%i]
  }
  func.return
}
