func.func @main(%N : !inter.set<N>, %g0 : !inter.set<g0, src: N, dst: N>, %x : !inter.rows<N, 6xf64>, 
    %W1 : !inter.rows<unit, 6x4xf64> {inter.needs_grad}, %b1 : !inter.rows<unit, 4xf64> {inter.needs_grad}, %W2 : !inter.rows<unit, 4x3xf64> {inter.needs_grad}, %b2 : !inter.rows<unit, 3xf64> {inter.needs_grad}) -> !inter.rows<N, 3xf64> {
  %one = inter.const 1.0 : !inter.rows<unit, f64>
  %g1 = inter.filter %g0 {no_loops} : !inter.set<g1, src: N, dst: N, parent: g0 mono>
  %l = inter.loops %g0 {remaining} : !inter.set<l, src: N mono onto, dst: N mono onto, old: g0 partial>
  %g = inter.union %g1, %l : !inter.set<g, src: N, dst: N, parts g1 l>
  %wg = inter.stack %g, %one, %one : !inter.rows<g, f64>
  %deg = inter.reduce sum %wg over %g along dst : !inter.rows<N, f64>
  %dis = inter.rsqrt %deg {zero = 0.0} : !inter.rows<N, f64>
  %ds = inter.at %g[src], %dis : !inter.rows<g, f64>
  %dd = inter.at %g[dst], %dis : !inter.rows<g, f64>
  %n0 = inter.mul %ds, %wg : !inter.rows<g, f64>
  %nr = inter.mul %n0, %dd : !inter.rows<g, f64>
  %nc = inter.reshape %nr : !inter.rows<g, 1xf64>
  %h1 = inter.contract "k,kf->f" %x, %W1 : !inter.rows<N, 4xf64>
  %s1 = inter.at %g[src], %h1 : !inter.rows<g, 4xf64>
  %m1 = inter.mul %nc, %s1 : !inter.rows<g, 4xf64>
  %a1 = inter.reduce sum %m1 over %g along dst : !inter.rows<N, 4xf64>
  %z1 = inter.add %a1, %b1 : !inter.rows<N, 4xf64>
  %r1 = inter.relu %z1 : !inter.rows<N, 4xf64>
  %h2 = inter.contract "k,kf->f" %r1, %W2 : !inter.rows<N, 3xf64>
  %s2 = inter.at %g[src], %h2 : !inter.rows<g, 3xf64>
  %m2 = inter.mul %nc, %s2 : !inter.rows<g, 3xf64>
  %a2 = inter.reduce sum %m2 over %g along dst : !inter.rows<N, 3xf64>
  %z2 = inter.add %a2, %b2 : !inter.rows<N, 3xf64>
  func.return %z2 : !inter.rows<N, 3xf64>
}
