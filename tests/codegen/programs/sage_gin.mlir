func.func @main(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 100xf64> {inter.needs_grad},
    %W1 : !inter.rows<unit, 33x100xf64> {inter.needs_grad}, %b1 : !inter.rows<unit, 33xf64> {inter.needs_grad}, %W2 : !inter.rows<unit, 33x100xf64> {inter.needs_grad}, %eps : !inter.rows<unit, 1xf64> {inter.needs_grad}, %W3 : !inter.rows<unit, 33x3xf64> {inter.needs_grad}) -> !inter.rows<N, 3xf64> {
  %one = inter.const 1.0 : !inter.rows<unit, f64>
  %s = inter.at %g[src], %x : !inter.rows<g, 100xf64>
  %m = inter.reduce mean %s over %g along dst : !inter.rows<N, 100xf64>
  %a = inter.contract "k,fk->f" %m, %W1 : !inter.rows<N, 33xf64>
  %b = inter.add %a, %b1 : !inter.rows<N, 33xf64>
  %c = inter.contract "k,fk->f" %x, %W2 : !inter.rows<N, 33xf64>
  %h = inter.add %b, %c : !inter.rows<N, 33xf64>
  %r = inter.elu %h {alpha = 1.0} : !inter.rows<N, 33xf64>
  %u = inter.at %g[src], %r : !inter.rows<g, 33xf64>
  %v = inter.reduce max %u over %g along dst {zero_ties} : !inter.rows<N, 33xf64>
  %e1 = inter.add %eps, %one : !inter.rows<unit, 1xf64>
  %t = inter.mul %e1, %r : !inter.rows<N, 33xf64>
  %y = inter.add %t, %v : !inter.rows<N, 33xf64>
  %mu = inter.reduce mean %y over %N along () : !inter.rows<unit, 33xf64>
  %q = inter.sub %y, %mu : !inter.rows<N, 33xf64>
  %z = inter.contract "k,kf->f" %q, %W3 : !inter.rows<N, 3xf64>
  %top = inter.row_reduce max %z [0] : !inter.rows<N, f64>
  %st = inter.stop %top : !inter.rows<N, f64>
  %tr = inter.reshape %st : !inter.rows<N, 1xf64>
  %zz = inter.sub %z, %tr : !inter.rows<N, 3xf64>
  %ex = inter.exp %zz : !inter.rows<N, 3xf64>
  %sm = inter.row_reduce sum %ex [0] : !inter.rows<N, f64>
  %lg = inter.log %sm : !inter.rows<N, f64>
  %lr = inter.reshape %lg : !inter.rows<N, 1xf64>
  %o = inter.sub %zz, %lr : !inter.rows<N, 3xf64>
  func.return %o : !inter.rows<N, 3xf64>
}
