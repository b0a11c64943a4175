"""Small layers as inter programs, typed on whole sets as the importer does."""

GRAPH = "%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>"
TYPED = """%N : !inter.set<N>, %R : !inter.set<R>,
    %g : !inter.set<g, src: N, dst: N, rel: R, pairs (rel, src) (dst, rel)>"""

GCN = f"""
func.func @gcn({GRAPH}, %x : !inter.rows<N, 5xf64> {{inter.needs_grad}}, %w : !inter.rows<g, f64>,
    %W1 : !inter.rows<unit, 5x4xf64> {{inter.needs_grad}},
    %b1 : !inter.rows<unit, 4xf64> {{inter.needs_grad}},
    %W2 : !inter.rows<unit, 4x3xf64> {{inter.needs_grad}}) -> !inter.rows<N, 3xf64> {{
  %one = inter.const 1.0 : !inter.rows<unit, f64>
  %g1 = inter.filter %g {{no_loops}} : !inter.set<g1, src: N, dst: N, parent: g mono>
  %l = inter.loops %g {{remaining}}
    : !inter.set<l, src: N mono onto, dst: N mono onto, old: g partial>
  %u = inter.union %g1, %l : !inter.set<u, src: N onto, dst: N onto, parts g1 l>
  %p = inter.abs %w : !inter.rows<g, f64>
  %w1 = inter.at %g1[parent], %p : !inter.rows<g1, f64>
  %wl = inter.at %l[old], %p else %one : !inter.rows<l, f64>
  %wu = inter.stack %u, %w1, %wl : !inter.rows<u, f64>
  %deg = inter.reduce sum %wu over %u along dst : !inter.rows<N, f64>
  %dis = inter.rsqrt %deg {{zero = 0.0}} : !inter.rows<N, f64>
  %ds = inter.at %u[src], %dis : !inter.rows<u, f64>
  %dd = inter.at %u[dst], %dis : !inter.rows<u, f64>
  %n0 = inter.mul %ds, %wu : !inter.rows<u, f64>
  %n1 = inter.mul %n0, %dd : !inter.rows<u, f64>
  %norm = inter.reshape %n1 : !inter.rows<u, 1xf64>
  %xs = inter.at %u[src], %x : !inter.rows<u, 5xf64>
  %s1 = inter.contract "k,kf->f" %xs, %W1 : !inter.rows<u, 4xf64>
  %m1 = inter.mul %norm, %s1 : !inter.rows<u, 4xf64>
  %a1 = inter.reduce sum %m1 over %u along dst : !inter.rows<N, 4xf64>
  %z1 = inter.add %a1, %b1 : !inter.rows<N, 4xf64>
  %r1 = inter.relu %z1 : !inter.rows<N, 4xf64>
  %h2 = inter.contract "k,kf->f" %r1, %W2 : !inter.rows<N, 3xf64>
  %s2 = inter.at %u[src], %h2 : !inter.rows<u, 3xf64>
  %m2 = inter.mul %norm, %s2 : !inter.rows<u, 3xf64>
  %a2 = inter.reduce sum %m2 over %u along dst : !inter.rows<N, 3xf64>
  func.return %a2 : !inter.rows<N, 3xf64>
}}
"""

LEARNED_WEIGHTS = GCN.replace("rows<g, f64>,", "rows<g, f64> {inter.needs_grad},")

RGAT = f"""
func.func @rgat({TYPED}, %x : !inter.rows<N, 5xf64> {{inter.needs_grad}},
    %W : !inter.rows<R, 5x4xf64> {{inter.needs_grad}},
    %ws : !inter.rows<R, 4xf64> {{inter.needs_grad}},
    %wt : !inter.rows<R, 4xf64> {{inter.needs_grad}}) -> !inter.rows<N, 4xf64> {{
  %xs = inter.at %g[src], %x : !inter.rows<g, 5xf64>
  %xd = inter.at %g[dst], %x : !inter.rows<g, 5xf64>
  %Wr = inter.at %g[rel], %W : !inter.rows<g, 5x4xf64>
  %wr = inter.at %g[rel], %ws : !inter.rows<g, 4xf64>
  %v = inter.contract "kf,f->k" %W, %wt : !inter.rows<R, 5xf64>
  %vr = inter.at %g[rel], %v : !inter.rows<g, 5xf64>
  %hs = inter.contract "k,kf->f" %xs, %Wr : !inter.rows<g, 4xf64>
  %as = inter.contract "f,f->" %hs, %wr : !inter.rows<g, f64>
  %at = inter.contract "k,k->" %xd, %vr : !inter.rows<g, f64>
  %z = inter.add %as, %at : !inter.rows<g, f64>
  %a = inter.leaky_relu %z {{slope = 0.2}} : !inter.rows<g, f64>
  %p = inter.softmax %a over %g along dst : !inter.rows<g, f64>
  %pc = inter.reshape %p : !inter.rows<g, 1xf64>
  %m = inter.mul %pc, %hs : !inter.rows<g, 4xf64>
  %o = inter.reduce sum %m over %g along dst : !inter.rows<N, 4xf64>
  func.return %o : !inter.rows<N, 4xf64>
}}
"""

SAGE = f"""
func.func @sage({GRAPH}, %x : !inter.rows<N, 4xf64> {{inter.needs_grad}},
    %Wl : !inter.rows<unit, 4x3xf64> {{inter.needs_grad}},
    %Wp : !inter.rows<unit, 4x3xf64> {{inter.needs_grad}},
    %b : !inter.rows<unit, 3xf64> {{inter.needs_grad}},
    %Wr : !inter.rows<unit, 4x3xf64> {{inter.needs_grad}}) -> !inter.rows<N, 3xf64> {{
  %xs = inter.at %g[src], %x : !inter.rows<g, 4xf64>
  %m = inter.reduce mean %xs over %g along dst : !inter.rows<N, 4xf64>
  %l = inter.contract "k,kf->f" %m, %Wl : !inter.rows<N, 3xf64>
  %p = inter.contract "k,kf->f" %xs, %Wp : !inter.rows<g, 3xf64>
  %q = inter.gelu %p : !inter.rows<g, 3xf64>
  %t = inter.reduce max %q over %g along dst {{zero_ties}} : !inter.rows<N, 3xf64>
  %r = inter.contract "k,kf->f" %x, %Wr : !inter.rows<N, 3xf64>
  %lb = inter.add %l, %b : !inter.rows<N, 3xf64>
  %s = inter.add %lb, %r : !inter.rows<N, 3xf64>
  %o = inter.add %s, %t : !inter.rows<N, 3xf64>
  %sq = inter.mul %o, %o : !inter.rows<N, 3xf64>
  %n2 = inter.row_reduce sum %sq [0] : !inter.rows<N, f64>
  %c = inter.const 0.1 : !inter.rows<unit, f64>
  %n3 = inter.add %n2, %c : !inter.rows<N, f64>
  %n = inter.sqrt %n3 : !inter.rows<N, f64>
  %y = inter.div %o, %n : !inter.rows<N, 3xf64>
  func.return %y : !inter.rows<N, 3xf64>
}}
""".replace(
    "%y = inter.div %o, %n :",
    """%nc = inter.reshape %n : !inter.rows<N, 1xf64>
  %y = inter.div %o, %nc :""",
)

# GIN with a batch norm inside (statistics over the nodes, a running mean as an update), a readout
GIN = f"""
func.func @gin({GRAPH}, %x : !inter.rows<N, 4xf64> {{inter.needs_grad}},
    %eps : !inter.rows<unit, f64> {{inter.needs_grad}},
    %W1 : !inter.rows<unit, 4x3xf64> {{inter.needs_grad}},
    %s : !inter.rows<unit, 3xf64> {{inter.needs_grad}},
    %W2 : !inter.rows<unit, 3x2xf64> {{inter.needs_grad}},
    %rm : !inter.rows<unit, 3xf64>) -> (!inter.rows<unit, 2xf64>,
      !inter.rows<unit, 3xf64> {{inter.update = "rm"}}) {{
  %xs = inter.at %g[src], %x : !inter.rows<g, 4xf64>
  %m = inter.reduce sum %xs over %g along dst : !inter.rows<N, 4xf64>
  %one = inter.const 1.0 : !inter.rows<unit, f64>
  %e = inter.add %one, %eps : !inter.rows<unit, f64>
  %ex = inter.mul %e, %x : !inter.rows<N, 4xf64>
  %h0 = inter.add %ex, %m : !inter.rows<N, 4xf64>
  %h = inter.contract "k,kf->f" %h0, %W1 : !inter.rows<N, 3xf64>
  %mu = inter.reduce mean %h over %N along () : !inter.rows<unit, 3xf64>
  %d = inter.sub %h, %mu : !inter.rows<N, 3xf64>
  %d2 = inter.mul %d, %d : !inter.rows<N, 3xf64>
  %v = inter.reduce mean %d2 over %N along () : !inter.rows<unit, 3xf64>
  %c = inter.const 0.00001 : !inter.rows<unit, f64>
  %ve = inter.add %v, %c : !inter.rows<unit, 3xf64>
  %rs = inter.rsqrt %ve : !inter.rows<unit, 3xf64>
  %k = inter.mul %rs, %s : !inter.rows<unit, 3xf64>
  %n = inter.mul %d, %k : !inter.rows<N, 3xf64>
  %a = inter.tanh %n : !inter.rows<N, 3xf64>
  %y = inter.contract "k,kf->f" %a, %W2 : !inter.rows<N, 2xf64>
  %o = inter.reduce sum %y over %N along () : !inter.rows<unit, 2xf64>
  %half = inter.const 0.5 : !inter.rows<unit, f64>
  %r0 = inter.add %rm, %mu : !inter.rows<unit, 3xf64>
  %r1 = inter.mul %r0, %half : !inter.rows<unit, 3xf64>
  func.return %o, %r1 : !inter.rows<unit, 2xf64>, !inter.rows<unit, 3xf64>
}}
"""

# two heads of three, dropout on the attention
GAT = f"""
func.func @gat({GRAPH}, %x : !inter.rows<N, 4xf64> {{inter.needs_grad}},
    %W : !inter.rows<unit, 4x2x3xf64> {{inter.needs_grad}},
    %as : !inter.rows<unit, 2x3xf64> {{inter.needs_grad}},
    %ad : !inter.rows<unit, 2x3xf64> {{inter.needs_grad}}, %key : !inter.rows<unit, i64>)
    -> !inter.rows<N, 6xf64> {{
  %h = inter.contract "k,khf->hf" %x, %W : !inter.rows<N, 2x3xf64>
  %es = inter.contract "hf,hf->h" %h, %as : !inter.rows<N, 2xf64>
  %ed = inter.contract "hf,hf->h" %h, %ad : !inter.rows<N, 2xf64>
  %ess = inter.at %g[src], %es : !inter.rows<g, 2xf64>
  %edd = inter.at %g[dst], %ed : !inter.rows<g, 2xf64>
  %z = inter.add %ess, %edd : !inter.rows<g, 2xf64>
  %a = inter.leaky_relu %z {{slope = 0.2}} : !inter.rows<g, 2xf64>
  %p = inter.softmax %a over %g along dst : !inter.rows<g, 2xf64>
  %q = inter.dropout %p, %key over %g {{p = 0.3, site = 0}} : !inter.rows<g, 2xf64>
  %hs = inter.at %g[src], %h : !inter.rows<g, 2x3xf64>
  %m = inter.contract "h,hf->hf" %q, %hs : !inter.rows<g, 2x3xf64>
  %s = inter.reduce sum %m over %g along dst : !inter.rows<N, 2x3xf64>
  %o = inter.reshape %s : !inter.rows<N, 6xf64>
  func.return %o : !inter.rows<N, 6xf64>
}}
"""

# values on three domains and a loss that leaves the cotangent on `unit`: where a wrong `over` is
# well typed, and only the numbers show it
READOUT = f"""
func.func @readout({TYPED}, %x : !inter.rows<N, 3xf64> {{inter.needs_grad}},
    %W : !inter.rows<R, 3x2xf64> {{inter.needs_grad}},
    %b : !inter.rows<unit, 2xf64> {{inter.needs_grad}})
    -> (!inter.rows<unit, 2xf64>, !inter.rows<N, 2xf64>, !inter.rows<R, 2xf64>) {{
  %xs = inter.at %g[src], %x : !inter.rows<g, 3xf64>
  %Wr = inter.at %g[rel], %W : !inter.rows<g, 3x2xf64>
  %h = inter.contract "k,kf->f" %xs, %Wr : !inter.rows<g, 2xf64>
  %hb = inter.add %h, %b : !inter.rows<g, 2xf64>
  %l = inter.leaky_relu %hb {{slope = 0.1}} : !inter.rows<g, 2xf64>
  %s = inter.reduce sum %l over %g along () : !inter.rows<unit, 2xf64>
  %m = inter.reduce mean %l over %g along (rel, src) : !inter.rows<g[rel, src], 2xf64>
  %t = inter.reduce max %l over %g along rel : !inter.rows<R, 2xf64>
  %q = inter.softmax %xs over %g along rel : !inter.rows<g, 3xf64>
  %qh = inter.contract "k,kf->f" %q, %Wr : !inter.rows<g, 2xf64>
  %v = inter.mul %m, %qh : !inter.rows<g, 2xf64>
  %o = inter.reduce sum %v over %g along dst : !inter.rows<N, 2xf64>
  func.return %s, %o, %t : !inter.rows<unit, 2xf64>, !inter.rows<N, 2xf64>, !inter.rows<R, 2xf64>
}}
"""

# heterogeneous: weights by the source's type, which the relation determines; values per pair of
# node features that no map of the edges leads to
HETERO = """
func.func @hetero(%T : !inter.set<T>, %B : !inter.set<B>,
    %N : !inter.set<N, tag: T, batch: B, pairs (batch, tag)>,
    %g : !inter.set<g, src: N, dst: N, pairs (src.batch, src.tag)>,
    %x : !inter.rows<N, 3xf64> {inter.needs_grad}, %W : !inter.rows<T, 3x2xf64> {inter.needs_grad},
    %c : !inter.rows<B, 2xf64> {inter.needs_grad}, %d : !inter.rows<T, 2xf64> {inter.needs_grad})
    -> !inter.rows<B, 2xf64> {
  %xs = inter.at %g[src], %x : !inter.rows<g, 3xf64>
  %Ws = inter.at %g[src.tag], %W : !inter.rows<g, 3x2xf64>
  %h = inter.contract "k,kf->f" %xs, %Ws : !inter.rows<g, 2xf64>
  %cn = inter.at %N[batch], %c : !inter.rows<N, 2xf64>
  %dn = inter.at %N[tag], %d : !inter.rows<N, 2xf64>
  %q = inter.mul %cn, %dn : !inter.rows<N, 2xf64>
  %qs = inter.at %g[src], %q : !inter.rows<g, 2xf64>
  %qd = inter.at %g[dst], %q : !inter.rows<g, 2xf64>
  %r = inter.sigmoid %qs : !inter.rows<g, 2xf64>
  %m0 = inter.mul %h, %r : !inter.rows<g, 2xf64>
  %m = inter.mul %m0, %qd : !inter.rows<g, 2xf64>
  %a = inter.reduce sum %m over %g along dst : !inter.rows<N, 2xf64>
  %o = inter.reduce max %a over %N along batch : !inter.rows<B, 2xf64>
  func.return %o : !inter.rows<B, 2xf64>
}
"""

PROGRAMS = {
    "gcn": GCN,
    "learned_weights": LEARNED_WEIGHTS,
    "rgat": RGAT,
    "sage": SAGE,
    "gin": GIN,
    "gat": GAT,
    "readout": READOUT,
    "hetero": HETERO,
}
