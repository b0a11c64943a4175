// RUN: gnn-opt %s -p infer-domains,verify-sets | filecheck %s

// Weights by the type of the source. The relation determines it, so (relation, source type) is the
// relation; a shared weight is per type, whatever relation reads it.
// CHECK-LABEL: func.func @determined
func.func @determined(%T : !inter.set<T>, %N : !inter.set<N, tag: T>, %R : !inter.set<R, st: T>,
    %g : !inter.set<g, src: N, dst: N, rel: R, eq src.tag = rel.st, pairs (rel, src)>,
    %k : !inter.rows<T, 4x4xf32>, %A : !inter.rows<R, 4x4xf32>) -> !inter.rows<N, 4x4xf32> {
  // CHECK: %kt = inter.at %g[src.tag], %k : !inter.rows<g[rel.st], 4x4xf32>
  %kt = inter.at %g[src.tag], %k : !inter.rows<g, 4x4xf32>
  %Ar = inter.at %g[rel], %A : !inter.rows<g, 4x4xf32>
  // CHECK: %kA = inter.contract "ij,jk->ik" %kt, %Ar : !inter.rows<g[rel], 4x4xf32>
  %kA = inter.contract "ij,jk->ik" %kt, %Ar : !inter.rows<g, 4x4xf32>
  %o = inter.reduce sum %kA over %g along dst : !inter.rows<N, 4x4xf32>
  func.return %o : !inter.rows<N, 4x4xf32>
}

// A relation that does not determine it leaves the pair (relation, source type).
// CHECK-LABEL: func.func @undetermined
func.func @undetermined(%T : !inter.set<T>, %N : !inter.set<N, tag: T>, %R : !inter.set<R>,
    %g : !inter.set<g, src: N, dst: N, rel: R, pairs (rel, src.tag)>,
    %k : !inter.rows<T, 4x4xf32>, %A : !inter.rows<R, 4x4xf32>) -> !inter.rows<N, 4x4xf32> {
  %kt = inter.at %g[src.tag], %k : !inter.rows<g, 4x4xf32>
  %Ar = inter.at %g[rel], %A : !inter.rows<g, 4x4xf32>
  // CHECK: %kA = inter.contract "ij,jk->ik" %kt, %Ar : !inter.rows<g[rel, src.tag], 4x4xf32>
  %kA = inter.contract "ij,jk->ik" %kt, %Ar : !inter.rows<g, 4x4xf32>
  %o = inter.reduce sum %kA over %g along dst : !inter.rows<N, 4x4xf32>
  func.return %o : !inter.rows<N, 4x4xf32>
}
