// RUN: gnn-opt %s -p verify-sets,split-phases,lower-to-intra,fuse-traversals,pack-members --split-input-file | filecheck %s
// RUN: gnn-opt %s -p verify-sets,split-phases,lower-to-intra,fuse-traversals,pack-members{line=4} --split-input-file | filecheck %s --check-prefix=SHORT

// X' g: the columns of a sparse matrix read its entries in their order, in which @prepare lays them.
// CHECK: func.func @prepare
// CHECK-DAG: %[[MEMBERS:.*]] = intra.members {domain = #intra.domain<z>, along = ["col"]}
// CHECK-DAG: %[[GIVEN:.*]] = intra.input {buffer = "v", domain = #intra.domain<z>, constant}
// CHECK-DAG: %[[LAID:.*]] = intra.output {buffer = "v_by_col", domain = #intra.domain<z>}
// CHECK: intra.traverse %[[P:.*]] in
// CHECK-NEXT: %[[ROW:.*]] = intra.lookup %[[MEMBERS]][%[[P]]]
// CHECK-NEXT: %[[V:.*]] = intra.load %[[GIVEN]][%[[ROW]]]
// CHECK-NEXT: intra.store %[[V]], %[[LAID]][%[[P]]]
// CHECK: func.func @forward
// CHECK: %[[IN:.*]] = intra.input {buffer = "v_by_col", domain = #intra.domain<z>, along = ["col"]}
// CHECK-NOT: intra.members
// CHECK-NOT: buffer = "v",
// CHECK: intra.segment %[[Q:.*]] in
// CHECK-NEXT: intra.load %[[IN]][%[[Q]]]
// Rows that fill what is read of memory at once stay where they are.
// SHORT-NOT: along = ["col"]} : memref<?xf32>
// SHORT: intra.members
func.func @main(%N: !inter.set<N>, %C: !inter.set<C>, %z: !inter.set<z, row: N, col: C>,
                %v: !inter.rows<z, f32> {inter.name = "v", inter.constant},
                %g: !inter.rows<N, 4xf32>) -> !inter.rows<C, 4xf32> {
  %1 = inter.reshape %v : !inter.rows<z, 1xf32>
  %2 = inter.at %z[row], %g : !inter.rows<z, 4xf32>
  %3 = inter.mul %1, %2 : !inter.rows<z, 4xf32>
  %4 = inter.reduce sum %3 over %z along col : !inter.rows<C, 4xf32>
  func.return %4 : !inter.rows<C, 4xf32>
}

// -----

// Numbers that are others at each call are read where they are.
// CHECK: func.func @forward
// CHECK-NOT: v_by_col
// CHECK: intra.members
func.func @main(%N: !inter.set<N>, %z: !inter.set<z, col: N>, %v: !inter.rows<z, f32>)
    -> !inter.rows<N, f32> {
  %1 = inter.reduce sum %v over %z along col : !inter.rows<N, f32>
  func.return %1 : !inter.rows<N, f32>
}

// -----

// So are those of which a partial map leaves some out: there are fewer positions than rows.
// CHECK: func.func @forward
// CHECK-NOT: v_by_col
// CHECK: intra.members
func.func @main(%N: !inter.set<N>, %z: !inter.set<z, col: N partial>,
                %v: !inter.rows<z, f32> {inter.name = "v", inter.constant}) -> !inter.rows<N, f32> {
  %1 = inter.reduce sum %v over %z along col : !inter.rows<N, f32>
  func.return %1 : !inter.rows<N, f32>
}
