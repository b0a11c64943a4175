// RUN: gnn-opt %s -p publish-totals --split-input-file | filecheck %s

// What ranks have summed each lies in a buffer of its own, which others read: nobody writes the
// totals over it. Reductions behind each other are one publication, of several kinds.
// CHECK-LABEL: func.func @forward()
// CHECK: %own_most = intra.alloc : memref<?x4xf32>
// CHECK-NEXT: %most = intra.output {buffer = "most"} : memref<?x4xf32>
// CHECK: %own_a = intra.alloc : memref<?x4xf32>
// CHECK-NEXT: %a = intra.alloc : memref<?x4xf32>
// CHECK: intra.total %v, %own_a {kind = "sum"}
// CHECK-NEXT: intra.total %v, %own_most {kind = "max"}
// CHECK: %[[S:.*]] = intra.peer_totals %own_a {kind = "sum"} : memref<?x4xf32>
// CHECK-NEXT: %[[T:.*]] = intra.peer_totals %own_most {kind = "max"} : memref<?x4xf32>
// CHECK-NEXT: intra.publish_all %[[S]], %[[T]]
// CHECK-NEXT: intra.traverse %[[I:.*]] in %[[ONE:.*]] {
// CHECK-NEXT: %[[X:.*]] = intra.load %[[S]][%[[I]]] : vector<4xf32>
// CHECK-NEXT: intra.store %[[X]], %a[%[[I]]]
// CHECK-NEXT: }
// CHECK-NEXT: intra.traverse %[[J:.*]] in %[[ONE]] {
// CHECK-NEXT: %[[Y:.*]] = intra.load %[[T]][%[[J]]] : vector<4xf32>
// CHECK-NEXT: intra.store %[[Y]], %most[%[[J]]]
// CHECK-NEXT: }
// CHECK-NEXT: intra.retire_all %[[S]], %[[T]]
// CHECK: intra.load %a[%f] : vector<4xf32>
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x4xf32>
  %most = intra.output {buffer = "most"} : memref<?x4xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x4xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %a = intra.alloc : memref<?x4xf32>
  intra.traverse %i in %n {
    %v = intra.load %x[%i] : vector<4xf32>
    intra.total %v, %a {kind = "sum"}
    intra.total %v, %most {kind = "max"}
  }
  intra.all_reduce %a {kind = "sum"}
  intra.all_reduce %most {kind = "max"}
  intra.traverse %i in %n {
    %f = intra.first : index
    %v = intra.load %x[%i] : vector<4xf32>
    %s = intra.load %a[%f] : vector<4xf32>
    %w = intra.apply %v, %s {fn = "div"} : vector<4xf32>
    intra.store %w, %y[%i]
  }
  func.return
}

// -----

// One that is reduced twice is published twice, and views before and after are of other memory.
// CHECK-LABEL: func.func @forward()
// CHECK: %own_a = intra.alloc {domain = #intra.domain<W>} : memref<?x2x3xf64>
// CHECK-NEXT: %own_a_1 = intra.alloc {domain = #intra.domain<W>} : memref<?x2x3xf64>
// CHECK-NEXT: %a = intra.alloc {domain = #intra.domain<W>} : memref<?x2x3xf64>
// CHECK-NEXT: %v = intra.view %a {domain = #intra.domain<W>} : memref<?x6xf64>
// CHECK-NEXT: %v_1 = intra.view %own_a_1 {domain = #intra.domain<W>} : memref<?x6xf64>
// CHECK-NEXT: %v_2 = intra.view %own_a {domain = #intra.domain<W>} : memref<?x6xf64>
// CHECK: intra.store %u, %v_2[%i]
// CHECK: intra.peer_totals %own_a {kind = "sum"}
// CHECK: intra.store %{{.*}}, %own_a_1[
// CHECK: intra.store %w, %v_1[
// CHECK: intra.peer_totals %own_a_1 {kind = "mul"}
// CHECK: intra.store %{{.*}}, %a[
// CHECK: intra.load %v[
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<W>} : memref<?x6xf64>
  %x = intra.input {buffer = "x", domain = #intra.domain<W>} : memref<?x6xf64>
  %n = intra.size {domain = #intra.domain<W>} : index
  %a = intra.alloc {domain = #intra.domain<W>} : memref<?x2x3xf64>
  %v = intra.view %a {domain = #intra.domain<W>} : memref<?x6xf64>
  intra.traverse %i in %n {
    %u = intra.load %x[%i] : vector<6xf64>
    intra.store %u, %v[%i]
  }
  intra.all_reduce %a {kind = "sum"}
  intra.traverse %i in %n {
    %u = intra.load %v[%i] : vector<6xf64>
    %w = intra.apply %u {fn = "exp"} : vector<6xf64>
    intra.store %w, %v[%i]
  }
  intra.all_reduce %a {kind = "mul"}
  intra.traverse %i in %n {
    %u = intra.load %v[%i] : vector<6xf64>
    intra.store %u, %y[%i]
  }
  func.return
}

// -----

// What an argument holds when the phase begins is reduced by a message.
// CHECK-LABEL: func.func @forward()
// CHECK: intra.all_reduce %w {kind = "sum"}
// CHECK-NOT: publish_all
func.func @forward() attributes {intra.phase} {
  %w = intra.input {buffer = "w", gives = "new_w"} : memref<?x4xf32>
  intra.all_reduce %w {kind = "sum"}
  func.return
}
