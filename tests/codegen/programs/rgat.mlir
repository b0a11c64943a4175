func.func @main(%N : !inter.set<N>, %R : !inter.set<R>, %g : !inter.set<g, src: N, dst: N, rel: R, pairs (rel, src) (dst, rel)>,
    %x : !inter.rows<N, 5xf64> {inter.needs_grad}, %W : !inter.rows<R, 5x4xf64> {inter.needs_grad}, %ws : !inter.rows<R, 4xf64> {inter.needs_grad}, %wt : !inter.rows<R, 4xf64> {inter.needs_grad}) -> !inter.rows<N, 4xf64> {
  %xs = inter.at %g[src], %x : !inter.rows<g, 5xf64>
  %xd = inter.at %g[dst], %x : !inter.rows<g, 5xf64>
  %Wr = inter.at %g[rel], %W : !inter.rows<g, 5x4xf64>
  %wr = inter.at %g[rel], %ws : !inter.rows<g, 4xf64>
  %u = inter.contract "kf,f->k" %W, %wt : !inter.rows<R, 5xf64>
  %ur = inter.at %g[rel], %u : !inter.rows<g, 5xf64>
  %hs = inter.contract "k,kf->f" %xs, %Wr : !inter.rows<g, 4xf64>
  %as = inter.contract "f,f->" %hs, %wr : !inter.rows<g, f64>
  %at = inter.contract "k,k->" %xd, %ur : !inter.rows<g, f64>
  %z = inter.add %as, %at : !inter.rows<g, f64>
  %a = inter.leaky_relu %z {slope = 0.2} : !inter.rows<g, f64>
  %p = inter.softmax %a over %g along dst : !inter.rows<g, f64>
  %pc = inter.reshape %p : !inter.rows<g, 1xf64>
  %m = inter.mul %pc, %hs : !inter.rows<g, 4xf64>
  %o = inter.reduce sum %m over %g along dst : !inter.rows<N, 4xf64>
  func.return %o : !inter.rows<N, 4xf64>
}
