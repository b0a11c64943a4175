// RUN: gnn-opt %s -p verify-sets --verify-diagnostics --parsing-diagnostics --split-input-file | filecheck %s

// What cannot be seen from one op: names of sets and where values can live.

func.func @joined(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %h : !inter.set<h, src: N, dst: N>, %x : !inter.rows<g, f32>, %y : !inter.rows<h, f32>) {
  // CHECK: @joined: inter.add: operands live on different sets, g and h: cross with inter.at (or reduce) first
  %z = inter.add %x, %y : !inter.rows<g, f32>
  func.return
}

// -----

// CHECK: @unborn: func.func: map dst of set g goes to M, which is never born in this function: add an argument of type !inter.set<M>
func.func @unborn(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: M>) {
  func.return
}

// -----

// CHECK: @unborn_rows: func.func: set K is not born in this function: no argument and no structure op has the type !inter.set<K, ..>
func.func @unborn_rows(%N : !inter.set<N>, %x : !inter.rows<K, f32>) {
  func.return
}

// -----

// CHECK: @twice: func.func: set g is born twice in one function
func.func @twice(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %h : !inter.set<g, src: N, dst: N>) {
  func.return
}

// -----

func.func @normal(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, f32>) {
  %a = inter.at %g[src], %x : !inter.rows<g[src], f32>
  %b = inter.at %g[dst], %x : !inter.rows<g[dst], f32>
  // CHECK: @normal: inter.add: rows<g[dst, src], ..> is not in normal form: it means rows<g, ..>; declare `pairs (dst, src)` to keep it
  %c = inter.add %a, %b : !inter.rows<g[dst, src], f32>
  func.return
}

// -----

func.func @mono(%N : !inter.set<N>, %T : !inter.set<T, parent: N mono>, %x : !inter.rows<N, f32>) {
  // CHECK: @mono: inter.at: rows<T[parent], ..> is not in normal form: it means rows<T, ..>
  %a = inter.at %T[parent], %x : !inter.rows<T[parent], f32>
  func.return
}

// -----

func.func @too_coarse(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, f32>, %w : !inter.rows<g, f32>) {
  %a = inter.at %g[src], %x : !inter.rows<g[src], f32>
  // CHECK: @too_coarse: inter.mul: the result lives on g or finer, its type says g[src]
  %b = inter.mul %a, %w : !inter.rows<g[src], f32>
  func.return
}

// -----

func.func @partial_exp(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, f32>) {
  %a = inter.at %g[src], %x : !inter.rows<g[src], f32>
  // CHECK: @partial_exp: inter.exp: the result lives on g or finer, its type says g[src]
  %b = inter.exp %a : !inter.rows<g[src], f32>
  func.return
}

// -----

func.func @over(%N : !inter.set<N>, %R : !inter.set<R>, %g : !inter.set<g, src: N, dst: N, rel: R, pairs (rel, src)>, %w : !inter.rows<g, f32>) {
  // CHECK: @over: inter.reduce: the operand lives on g and cannot be read at the rows of g[rel, src]
  %b = inter.reduce sum %w over %g[rel, src] along rel : !inter.rows<R, f32>
  func.return
}

// -----

func.func @along(%N : !inter.set<N>, %R : !inter.set<R>, %g : !inter.set<g, src: N, dst: N, rel: R, pairs (rel, src)>, %w : !inter.rows<g[rel, src], f32>) {
  // CHECK: @along: inter.reduce: along (dst) is not determined by a row of g[rel, src]: `along` must be coarser than `over`
  %b = inter.reduce sum %w over %g[rel, src] along dst : !inter.rows<N, f32>
  func.return
}

// -----

func.func @wrong_set(%N : !inter.set<N>, %M : !inter.set<M>, %g : !inter.set<g, src: N, dst: M>, %x : !inter.rows<M, f32>) {
  // CHECK: @wrong_set: inter.at: map src of g goes to N, but the operand lives on M: read it through a map to M
  %a = inter.at %g[src], %x : !inter.rows<g, f32>
  func.return
}

// -----

// A well-formed function passes unchanged.
// CHECK-LABEL: func.func @good
// CHECK: inter.softmax
func.func @good(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, f32>) -> !inter.rows<g, f32> {
  %a = inter.at %g[src], %x : !inter.rows<g[src], f32>
  %p = inter.softmax %a over %g along dst : !inter.rows<g, f32>
  func.return %p : !inter.rows<g, f32>
}

// -----

// Two equations that say the same class in two ways: one of them is the normal form.
func.func @equation(%T : !inter.set<T>, %N : !inter.set<N, tag: T>, %R : !inter.set<R, st: T>, %g : !inter.set<g, src: N, rel: R, eq src.tag = rel.st>, %x : !inter.rows<T, f32>) {
  // CHECK: @equation: inter.at: rows<g[src.tag], ..> is not in normal form: it means rows<g[rel.st], ..>
  %a = inter.at %g[src.tag], %x : !inter.rows<g[src.tag], f32>
  func.return
}

// -----

func.func @partial(%N : !inter.set<N>, %l : !inter.set<l, old: N partial>, %x : !inter.rows<N, f32>) {
  // CHECK: @partial: inter.at: map old of l is partial: say what to read where it has no value, `else %y`
  %a = inter.at %l[old], %x : !inter.rows<l, f32>
  func.return
}

// -----

func.func @total(%N : !inter.set<N>, %g : !inter.set<g, src: N>, %x : !inter.rows<N, f32>, %y : !inter.rows<unit, f32>) {
  // CHECK: @total: inter.at: map src of g has a value on every row: drop the `else`
  %a = inter.at %g[src], %x else %y : !inter.rows<g, f32>
  func.return
}

// -----

func.func @pairs(%N : !inter.set<N>, %R : !inter.set<R>, %g : !inter.set<g, dst: N, rel: R>, %x : !inter.rows<g, f32>) {
  // CHECK: @pairs: inter.reduce: set g declares no pairs (dst, rel): add them to its type, or reduce along one map
  %a = inter.reduce sum %x over %g along (dst, rel) : !inter.rows<g[dst, rel], f32>
  func.return
}

// -----

func.func @map(%N : !inter.set<N>, %g : !inter.set<g, src: N>, %x : !inter.rows<g, f32>) {
  // CHECK: @map: inter.reduce: set g has no map 'dst'; it has src
  %a = inter.reduce sum %x over %g along dst : !inter.rows<N, f32>
  func.return
}

// -----

func.func @softmax(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<g, f32>) {
  // CHECK: @softmax: inter.softmax: the result lives on g or finer, its type says g[dst]
  %p = inter.softmax %x over %g along dst : !inter.rows<g[dst], f32>
  func.return
}

// -----

func.func @cap(%N : !inter.set<N>, %R : !inter.set<R>, %g : !inter.set<g, src: N, rel: R, pairs (rel, src)>, %x : !inter.rows<N, f32>) {
  %a = inter.at %g[src], %x : !inter.rows<g[src], f32>
  // CHECK: @cap: inter.softmax: the result lives on g[rel, src] or coarser, its type says g
  %p = inter.softmax %a over %g[rel, src] along rel : !inter.rows<g, f32>
  func.return
}

// -----

func.func @count(%N : !inter.set<N>, %g : !inter.set<g, src: N, dst: N>) {
  // CHECK: @count: inter.count: the result lives on N, its type says g
  %p = inter.count over %g along dst : !inter.rows<g, f32>
  func.return
}

// -----

func.func @mask(%N : !inter.set<N>, %g : !inter.set<g, src: N>, %m : !inter.rows<N, i1>) {
  // CHECK: @mask: inter.filter: the mask lives on N and cannot be read at the rows of g
  %f = inter.filter %g, %m : !inter.set<f, src: N, parent: g mono>
  func.return
}

// -----

// CHECK: verify_sets.mlir:{{[0-9]+}}:1: @eq: func.func: set g: src goes to N and rel to R, they cannot be equal
func.func @eq(%N : !inter.set<N>, %R : !inter.set<R>, %g : !inter.set<g, src: N, rel: R, eq src = rel>) {
  func.return
}
