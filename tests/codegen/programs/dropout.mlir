func.func @main(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 37xf64> {inter.needs_grad}, %w : !inter.rows<g, f64> {inter.needs_grad}, %key : !inter.rows<unit, i64>) -> !inter.rows<N, 37xf64> {
  %d = inter.dropout %x, %key over %N {p = 0.4, site = 3} : !inter.rows<N, 37xf64>
  %e = inter.dropout %w, %key over %g {p = 0.5, site = 4} : !inter.rows<g, f64>
  %s = inter.at %g[src], %d : !inter.rows<g, 37xf64>
  %m = inter.mul %e, %s : !inter.rows<g, 37xf64>
  %o = inter.reduce sum %m over %g along dst : !inter.rows<N, 37xf64>
  func.return %o : !inter.rows<N, 37xf64>
}
