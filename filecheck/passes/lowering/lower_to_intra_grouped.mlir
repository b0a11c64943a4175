// RUN: gnn-opt %s -p lower-to-intra --split-input-file | filecheck %s

// Pairs lie in the order of their first key: rows with one relation share its matrix as they are.
// CHECK: func.func @forward()
// CHECK: %[[REL:.*]] = intra.index_map {domain = #intra.domain<g[rel, src]>, path = "rel"}
// CHECK: intra.traverse %[[ROW:.*]] in
// CHECK: %[[R:.*]] = intra.lookup %[[REL]][%[[ROW]]] : index
// CHECK: %[[Y:.*]] = intra.matmul %{{.*}}, %{{.*}}[%[[R]]] {spec = "k,kf->f"} : vector<20xf32>
// CHECK: intra.store %[[Y]], %{{.*}}[%[[ROW]]]
func.func @forward(%N : !inter.set<N>, %R : !inter.set<R>, %g : !inter.set<g, src: N, dst: N, rel: R, pairs (rel, src)>, %x : !inter.rows<N, 20xf32>, %W : !inter.rows<R, 20x20xf32>) -> !inter.rows<g[rel, src], 20xf32> {
  %xs = inter.at %g[src], %x : !inter.rows<g[src], 20xf32>
  %Wr = inter.at %g[rel], %W : !inter.rows<g[rel], 20x20xf32>
  %h = inter.contract "k,kf->f" %xs, %Wr : !inter.rows<g[rel, src], 20xf32>
  func.return %h : !inter.rows<g[rel, src], 20xf32>
}

// -----

// Edges come in the user's order: the nest visits them relation by relation.
// CHECK: func.func @forward()
// CHECK: %[[MEMBERS:.*]] = intra.members {domain = #intra.domain<g>, along = ["rel"]}
// CHECK: %[[REL:.*]] = intra.member_map {domain = #intra.domain<g>, along = ["rel"], path = "rel"}
// CHECK: intra.traverse %[[AT:.*]] in
// CHECK: %[[R:.*]] = intra.lookup %[[REL]][%[[AT]]] : index
// CHECK: %[[ROW:.*]] = intra.lookup %[[MEMBERS]][%[[AT]]] : index
// CHECK: intra.load %{{.*}}[%[[ROW]]] : vector<20xf32>
// CHECK: %[[Y:.*]] = intra.matmul %{{.*}}, %{{.*}}[%[[R]]] {spec = "k,kf->f"} : vector<20xf32>
// CHECK: intra.store %[[Y]], %{{.*}}[%[[ROW]]]
func.func @forward(%R : !inter.set<R>, %g : !inter.set<g, rel: R>, %x : !inter.rows<g, 20xf32>, %W : !inter.rows<R, 20x20xf32>) -> !inter.rows<g, 20xf32> {
  %Wr = inter.at %g[rel], %W : !inter.rows<g[rel], 20x20xf32>
  %h = inter.contract "k,kf->f" %x, %Wr : !inter.rows<g, 20xf32>
  func.return %h : !inter.rows<g, 20xf32>
}

// -----

// The gradient of a matrix a relation: a sum of outer products a relation, none of them stored.
// CHECK: func.func @forward()
// CHECK: %[[OUT:.*]] = intra.output {buffer = "dW", domain = #intra.domain<R>} : memref<?x20x20xf32>
// CHECK: %[[N:.*]] = intra.size {domain = #intra.domain<R>} : index
// CHECK: intra.outer %{{.*}}, %{{.*}}, %[[OUT]][%{{.*}} of %[[N]]] {spec = "k,f->kf"}
// CHECK-NOT: intra.segment
func.func @forward(%R : !inter.set<R>, %g : !inter.set<g, rel: R>, %x : !inter.rows<g, 20xf32>, %d : !inter.rows<g, 20xf32>) -> !inter.rows<R, 20x20xf32> {
  %o = inter.contract "k,f->kf" %x, %d : !inter.rows<g, 20x20xf32>
  %dW = inter.reduce sum %o over %g along rel : !inter.rows<R, 20x20xf32>
  func.return %dW : !inter.rows<R, 20x20xf32>
}

// -----

// Few numbers stay in registers, in a loop over the relation's edges.
// CHECK: func.func @forward()
// CHECK: intra.dot
// CHECK: intra.segment
// CHECK-NOT: intra.outer
// CHECK: func.return
func.func @forward(%R : !inter.set<R>, %g : !inter.set<g, rel: R>, %x : !inter.rows<g, 4xf32>, %d : !inter.rows<g, 5xf32>) -> !inter.rows<R, 4x5xf32> {
  %o = inter.contract "k,f->kf" %x, %d : !inter.rows<g, 4x5xf32>
  %dW = inter.reduce sum %o over %g along rel : !inter.rows<R, 4x5xf32>
  func.return %dW : !inter.rows<R, 4x5xf32>
}
