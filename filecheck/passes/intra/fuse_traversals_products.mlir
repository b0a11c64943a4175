// RUN: gnn-opt %s -p fuse-traversals --split-input-file | filecheck %s
// RUN: gnn-opt %s -p "fuse-traversals{target=cuda}" --split-input-file | filecheck %s --check-prefix STORED

// Three numbers an edge times a matrix are seven: the loop over the edges makes them, and no row of
// them is stored.
// CHECK: func.func @narrow
// CHECK-NOT: intra.alloc
// CHECK: intra.segment
// CHECK: %[[X:.*]] = intra.load %{{.*}}[%{{.*}}] : vector<3xf32>
// CHECK-NEXT: %[[Y:.*]] = intra.matmul %[[X]], %{{.*}} {spec = "k,fk->f"} : vector<7xf32>
// CHECK-NEXT: intra.yield %[[Y]]
// A GPU makes them in tiles of rows.
// STORED: func.func @narrow
// STORED: intra.traverse
// STORED: intra.matmul
// STORED-NEXT: intra.store
// STORED: intra.segment
// STORED-NOT: intra.matmul
// STORED: intra.yield
func.func @narrow() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x7xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<g>} : memref<?x3xf32>
  %w = intra.input {buffer = "w"} : memref<?x7x3xf32>
  %t = intra.alloc {domain = #intra.domain<g>} : memref<?x7xf32>
  %e = intra.size {domain = #intra.domain<g>} : index
  %n = intra.size {domain = #intra.domain<N>} : index
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %members = intra.members {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi32>
  intra.traverse %i in %e {
    %a = intra.load %x[%i] : vector<3xf32>
    %b = intra.matmul %a, %w {spec = "k,fk->f"} : vector<7xf32>
    intra.store %b, %t[%i]
  }
  intra.traverse %i in %n {
    %s = intra.segment %p in %offsets[%i] ["sum"] {
      %j = intra.lookup %members[%p] : index
      %a = intra.load %t[%j] : vector<7xf32>
      intra.yield %a
    } : vector<7xf32>
    intra.store %s, %y[%i]
  }
  func.return
}

// -----

// A product that is no longer than the row it is made of is read.
// CHECK: func.func @shorter
// CHECK: intra.matmul
// CHECK-NEXT: intra.store
// CHECK: intra.segment
// CHECK-NOT: intra.matmul
// CHECK: intra.yield
// STORED: func.func @shorter
func.func @shorter() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x3xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<g>} : memref<?x3xf32>
  %w = intra.input {buffer = "w"} : memref<?x3x3xf32>
  %t = intra.alloc {domain = #intra.domain<g>} : memref<?x3xf32>
  %e = intra.size {domain = #intra.domain<g>} : index
  %n = intra.size {domain = #intra.domain<N>} : index
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %members = intra.members {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi32>
  intra.traverse %i in %e {
    %a = intra.load %x[%i] : vector<3xf32>
    %b = intra.matmul %a, %w {spec = "k,fk->f"} : vector<3xf32>
    intra.store %b, %t[%i]
  }
  intra.traverse %i in %n {
    %s = intra.segment %p in %offsets[%i] ["sum"] {
      %j = intra.lookup %members[%p] : index
      %a = intra.load %t[%j] : vector<3xf32>
      intra.yield %a
    } : vector<3xf32>
    intra.store %s, %y[%i]
  }
  func.return
}
