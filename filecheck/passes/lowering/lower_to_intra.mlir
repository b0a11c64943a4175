// RUN: gnn-opt %s -p lower-to-intra --split-input-file | filecheck %s

// The caller's sets go to @structure, rows become buffers by name, and each op becomes one nest.
// CHECK: func.func @structure(%N: !inter.set<N> {inter.name = "N"}, %g: !inter.set<g, src: N, dst: N> {inter.name = "g"}) {
// CHECK-NEXT: func.return
// CHECK: func.func @forward() attributes {intra.phase} {
// CHECK-NEXT: %[[OUT:.*]] = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x3xf32>
// CHECK-NEXT: %[[X:.*]] = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x3xf32>
// CHECK-NEXT: %[[B:.*]] = intra.input {buffer = "b"} : memref<?x3xf32>
// A value seen from the edges through src is a view of the node's row: no nest for `at`.
// CHECK: %[[MESSAGE:.*]] = intra.alloc {domain = #intra.domain<g>} : memref<?x3xf32>
// CHECK: %[[OFFSETS:.*]] = intra.offsets {domain = #intra.domain<g>, along = ["dst"]}
// CHECK-NEXT: %[[MEMBERS:.*]] = intra.members {domain = #intra.domain<g>, along = ["dst"]}
// CHECK: intra.traverse %[[E:.*]] in
// CHECK-NEXT: intra.lookup
// CHECK-NEXT: intra.load %[[X]]
// CHECK-NEXT: intra.lookup
// CHECK-NEXT: intra.load %[[X]]
// CHECK-NEXT: intra.apply {{.*}} {fn = "mul"} : vector<3xf32>
// CHECK-NEXT: intra.store {{.*}}, %[[MESSAGE]][%[[E]]]
// A reduction is a segment over the members of each group.
// CHECK: intra.traverse %[[I:.*]] in
// CHECK-NEXT: %[[SUM:.*]] = intra.segment %[[P:.*]] in %[[OFFSETS]][%[[I]]] ["sum"] {
// CHECK-NEXT: %[[M:.*]] = intra.lookup %[[MEMBERS]][%[[P]]] : index
// CHECK-NEXT: %[[V:.*]] = intra.load %[[MESSAGE]][%[[M]]] : vector<3xf32>
// CHECK-NEXT: intra.yield %[[V]]
// CHECK-NEXT: } : vector<3xf32>
// CHECK-NEXT: intra.store %[[SUM]]
// A parameter is read at row 0.
// CHECK: intra.traverse
// CHECK-NEXT: intra.load
// CHECK-NEXT: %[[FIRST:.*]] = intra.first : index
// CHECK-NEXT: intra.load %[[B]][%[[FIRST]]] : vector<3xf32>
// CHECK-NEXT: intra.apply {{.*}} {fn = "add"}
// CHECK-NEXT: intra.store {{.*}}, %[[OUT]]
// CHECK-NOT: intra.traverse
func.func @forward(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 3xf32>, %b : !inter.rows<unit, 3xf32>) -> !inter.rows<N, 3xf32> {
  %s = inter.at %g[src], %x : !inter.rows<g[src], 3xf32>
  %d = inter.at %g[dst], %x : !inter.rows<g[dst], 3xf32>
  %m = inter.mul %s, %d : !inter.rows<g, 3xf32>
  %a = inter.reduce sum %m over %g along dst : !inter.rows<N, 3xf32>
  %y = inter.add %a, %b : !inter.rows<N, 3xf32>
  func.return %y : !inter.rows<N, 3xf32>
}

// -----

// Sets that are made move to @structure with what they are made from; the phases know them by name.
// CHECK: func.func @structure(%N: !inter.set<N> {inter.name = "N"}, %g: !inter.set<g, src: N, dst: N> {inter.name = "g"})
// CHECK-SAME: -> (!inter.set<l, src: N mono onto, dst: N mono onto> {inter.name = "l"})
// CHECK-NEXT: %[[L:.*]] = inter.loops %g
// CHECK-NEXT: func.return %[[L]]
// CHECK: func.func @prepare() attributes {intra.phase}
// CHECK: intra.output {buffer = "deg", domain = #intra.domain<N>} : memref<?xf32>
// The size of a group is its length.
// CHECK: %[[LEN:.*]] = intra.length {{.*}} : i64
// CHECK-NEXT: intra.cast %[[LEN]] : f32
func.func @prepare(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>) -> (!inter.set<l, src: N mono onto, dst: N mono onto> {inter.name = "l"}, !inter.rows<N, f32> {inter.name = "deg"}) {
  %l = inter.loops %g : !inter.set<l, src: N mono onto, dst: N mono onto>
  %deg = inter.count over %g along dst : !inter.rows<N, f32>
  func.return %l, %deg : !inter.set<l, src: N mono onto, dst: N mono onto>, !inter.rows<N, f32>
}
func.func @forward(%N : !inter.set<N>, %l : !inter.set<l, src: N mono onto, dst: N mono onto>, %deg : !inter.rows<N, f32>) -> !inter.rows<N, f32> {
  %y = inter.neg %deg : !inter.rows<N, f32>
  func.return %y : !inter.rows<N, f32>
}

// -----

// A dropout hashes the row of its nest, or the number that it is given for it.
// CHECK: %[[X:.*]] = intra.input {buffer = "x"
// CHECK: %[[KEY:.*]] = intra.input {buffer = "key"}
// CHECK: %[[NUMBERS:.*]] = intra.input {buffer = "i"
// CHECK: intra.traverse %[[A:.*]] in
// CHECK: intra.dropout %{{.*}}, %{{.*}}, %[[A]] {p = {{.*}}, site = 0 : i64} : vector<3xf32>
// CHECK: intra.traverse %[[B:.*]] in
// CHECK: %[[N:.*]] = intra.load %[[NUMBERS]][%[[B]]] : i64
// CHECK-NEXT: intra.dropout %{{.*}}, %{{.*}}, %[[N]] {p = {{.*}}, site = 1 : i64} : vector<3xf32>
func.func @forward(%N : !inter.set<N>, %x : !inter.rows<N, 3xf32>, %key : !inter.rows<unit, i64>, %i : !inter.rows<N, i64>) -> !inter.rows<N, 3xf32> {
  %y = inter.dropout %x, %key over %N {p = 0.5, site = 0} : !inter.rows<N, 3xf32>
  %z = inter.dropout %y, %key over %N as %i {p = 0.5, site = 1} : !inter.rows<N, 3xf32>
  func.return %z : !inter.rows<N, 3xf32>
}
