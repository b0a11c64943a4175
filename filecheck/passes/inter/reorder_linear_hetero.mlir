// RUN: gnn-opt %s -p reorder-linear,dce-sets,infer-domains,verify-sets | filecheck %s

// HGT: the keys' weight by the source's type, then a weight by relation. Where the relation does not
// tell the type, their product lives on the pairs (relation, type). The keys' weight itself is
// shared: the other product still reads what was given.
// CHECK-LABEL: func.func @keys
// CHECK: %[[KA:.*]] = inter.contract "ab,bc->ac" %Kt, %Ar : !inter.rows<g[rel, src.tag], 64x2xf32>
// CHECK: inter.contract "a,ac->c" %xs, %[[KA]]
// CHECK: %Kn = inter.at %N[tag], %K : !inter.rows<N[tag], 64x64xf32>
// CHECK-NEXT: %n = inter.contract "i,ij->j" %x, %Kn
func.func @keys(%T : !inter.set<T>, %N : !inter.set<N, tag: T>, %R : !inter.set<R>,
    %g : !inter.set<g, src: N, dst: N, rel: R, pairs (rel, src) (rel, src.tag)>,
    %x : !inter.rows<N, 64xf32>, %K : !inter.rows<T, 64x64xf32>, %A : !inter.rows<R, 64x2xf32>) -> (!inter.rows<N, 2xf32>, !inter.rows<N, 64xf32>)
    attributes {inter.stats = {T = 2 : i64, R = 5 : i64, N = 1000 : i64, g = 10000 : i64}} {
  %xs = inter.at %g[src], %x : !inter.rows<g, 64xf32>
  %Kt = inter.at %g[src.tag], %K : !inter.rows<g, 64x64xf32>
  %Ar = inter.at %g[rel], %A : !inter.rows<g, 64x2xf32>
  %k = inter.contract "i,ij->j" %xs, %Kt : !inter.rows<g, 64xf32>
  %y = inter.contract "i,ij->j" %k, %Ar : !inter.rows<g, 2xf32>
  %o = inter.reduce max %y over %g along dst : !inter.rows<N, 2xf32>
  %Kn = inter.at %N[tag], %K : !inter.rows<N, 64x64xf32>
  %n = inter.contract "i,ij->j" %x, %Kn : !inter.rows<N, 64xf32>
  func.return %o, %n : !inter.rows<N, 2xf32>, !inter.rows<N, 64xf32>
}
