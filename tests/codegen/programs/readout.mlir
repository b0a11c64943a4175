func.func @main(%N : !inter.set<N>, %R : !inter.set<R>, %g : !inter.set<g, src: N, dst: N, rel: R, pairs (rel, src)>,
    %x : !inter.rows<N, 3xf64> {inter.needs_grad}, %W : !inter.rows<R, 3x2xf64> {inter.needs_grad}, %b : !inter.rows<unit, 2xf64> {inter.needs_grad}) -> (!inter.rows<unit, 2xf64>, !inter.rows<N, 2xf64>, !inter.rows<R, 2xf64>) {
  %xs = inter.at %g[src], %x : !inter.rows<g, 3xf64>
  %Wr = inter.at %g[rel], %W : !inter.rows<g, 3x2xf64>
  %h = inter.contract "k,kf->f" %xs, %Wr : !inter.rows<g, 2xf64>
  %hb = inter.add %h, %b : !inter.rows<g, 2xf64>
  %l = inter.leaky_relu %hb {slope = 0.1} : !inter.rows<g, 2xf64>
  %s = inter.reduce sum %l over %g along () : !inter.rows<unit, 2xf64>
  %m = inter.reduce mean %l over %g along (rel, src) : !inter.rows<g[rel, src], 2xf64>
  %t = inter.reduce max %l over %g along rel : !inter.rows<R, 2xf64>
  %q = inter.softmax %xs over %g along rel : !inter.rows<g, 3xf64>
  %qh = inter.contract "k,kf->f" %q, %Wr : !inter.rows<g, 2xf64>
  %v = inter.mul %m, %qh : !inter.rows<g, 2xf64>
  %o = inter.reduce sum %v over %g along dst : !inter.rows<N, 2xf64>
  func.return %s, %o, %t : !inter.rows<unit, 2xf64>, !inter.rows<N, 2xf64>, !inter.rows<R, 2xf64>
}
