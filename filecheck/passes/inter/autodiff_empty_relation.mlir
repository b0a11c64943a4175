// RUN: gnn-opt %s -p autodiff,cse,dce,split-phases,lower-to-intra,fuse-traversals | filecheck %s

// The gradient of typed weights: a nest over all relations that stores a row for each, so that a
// relation without edges gets the 0 that an empty segment gives.
// CHECK: func.func @backward()
// CHECK-DAG: %[[OUT:.*]] = intra.output {buffer = "d_W", domain = #intra.domain<R>}
// CHECK-DAG: %[[ALL:.*]] = intra.size {domain = #intra.domain<R>}
// CHECK-DAG: %[[PAIRS:.*]] = intra.offsets {domain = #intra.domain<g[rel, src]>, along = ["rel"]}
// CHECK: intra.traverse %[[R:.*]] in %[[ALL]] {
// CHECK-NEXT: %[[SUM:.*]] = intra.segment %{{.*}} in %[[PAIRS]][%[[R]]] ["sum"] {
// CHECK: intra.dot %{{.*}}, %{{.*}} {spec = "k,f->kf"}
// CHECK: intra.store %[[SUM]], %[[OUT]][%[[R]]]
func.func @typed(%N : !inter.set<N>, %R : !inter.set<R>, %g : !inter.set<g, src: N, dst: N, rel: R, pairs (rel, src)>,
    %x : !inter.rows<N, 3xf32>, %W : !inter.rows<R, 3x2xf32> {inter.needs_grad}) -> !inter.rows<N, 2xf32> {
  %xs = inter.at %g[src], %x : !inter.rows<g[src], 3xf32>
  %Wr = inter.at %g[rel], %W : !inter.rows<g[rel], 3x2xf32>
  %h = inter.contract "k,kf->f" %xs, %Wr : !inter.rows<g[rel, src], 2xf32>
  %o = inter.reduce sum %h over %g along dst : !inter.rows<N, 2xf32>
  func.return %o : !inter.rows<N, 2xf32>
}
