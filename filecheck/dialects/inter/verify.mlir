// RUN: gnn-opt %s --verify-diagnostics --parsing-diagnostics --split-input-file | filecheck %s

// Each message says what is wrong and how to mend it.

// CHECK: `unit` is the one-row domain and cannot name a set: rename it
func.func @f(%u : !inter.set<unit>) { func.return }

// -----

// CHECK: map src is declared twice
func.func @f(%g : !inter.set<g, src: N, src: N>) { func.return }

// -----

// CHECK: map src: unknown property 'injective', expected one of mono, onto, partial
func.func @f(%g : !inter.set<g, src: N injective>) { func.return }

// -----

// CHECK: pairs of set g names 'rel', which is no map of it; it has src
func.func @f(%g : !inter.set<g, src: N, pairs (rel, src)>) { func.return }

// -----

// CHECK: pairs (src) of set g: name two different maps or more
func.func @f(%g : !inter.set<g, src: N, pairs (src)>) { func.return }

// -----

// CHECK: expected `:` and a codomain after a map's name, or one of `parts`, `eq`, `pairs`
func.func @f(%g : !inter.set<g, src>) { func.return }

// -----

// CHECK: rows<unit, ..> has no keys: it is a single row
func.func @f(%x : !inter.rows<unit[src], f32>) { func.return }

// -----

// CHECK: keys are not sorted and distinct: write rows<g[rel, src], ..>
func.func @f(%x : !inter.rows<g[src, rel], f32>) { func.return }

// -----

// CHECK: row dimensions are positive constants, not 0x4
func.func @f(%x : !inter.rows<g, 0x4xf32>) { func.return }

// -----

// CHECK: rows of f16: element types are f32, f64, i32, i64 and i1
func.func @f(%x : !inter.rows<g, 4xf16>) { func.return }

// -----

// CHECK: filter by a mask or by {no_loops}: give exactly one of them
func.func @f(%g : !inter.set<g, src: N, dst: N>) {
  %a = inter.filter %g : !inter.set<a, src: N, dst: N, parent: g mono>
  func.return
}

// -----

// CHECK: the mask is one i1 per row, not !inter.rows<g, f32>
func.func @f(%g : !inter.set<g, src: N, dst: N>, %m : !inter.rows<g, f32>) {
  %a = inter.filter %g, %m : !inter.set<a, src: N, dst: N, parent: g mono>
  func.return
}

// -----

// CHECK: the result set must have the map `parent: g mono`
func.func @f(%g : !inter.set<g, src: N, dst: N>) {
  %a = inter.filter %g {no_loops} : !inter.set<a, src: N, dst: N>
  func.return
}

// -----

// CHECK: write the result's maps in the order src, dst, parent
func.func @f(%g : !inter.set<g, src: N, dst: N>) {
  %a = inter.filter %g {no_loops} : !inter.set<a, dst: N, src: N, parent: g mono>
  func.return
}

// -----

// CHECK: map src of the result is not known to be onto: drop the word
func.func @f(%g : !inter.set<g, src: N, dst: N>) {
  %a = inter.filter %g {no_loops} : !inter.set<a, src: N onto, dst: N, parent: g mono>
  func.return
}

// -----

// CHECK: the equation src = dst does not follow from the operands: drop it
func.func @f(%g : !inter.set<g, src: N, dst: N>) {
  %a = inter.filter %g {no_loops} : !inter.set<a, src: N, dst: N, parent: g mono, eq src = dst>
  func.return
}

// -----

// CHECK: set g can have no loops: its maps src and dst must go to one set
func.func @f(%g : !inter.set<g, src: N, dst: M>) {
  %a = inter.loops %g : !inter.set<a, src: N mono onto, dst: N mono onto>
  func.return
}

// -----

// CHECK: map old of the result must be declared partial
func.func @f(%g : !inter.set<g, src: N, dst: N>) {
  %a = inter.loops %g {remaining} : !inter.set<a, src: N mono onto, dst: N mono onto, old: g>
  func.return
}

// -----

// CHECK: the result set must declare `parts g h`
func.func @f(%g : !inter.set<g, src: N, dst: N>, %h : !inter.set<h, src: N>) {
  %a = inter.union %g, %h : !inter.set<a, src: N>
  func.return
}

// -----

// CHECK: the result set has no map dst: drop it from its type
func.func @f(%g : !inter.set<g, src: N, dst: N>, %h : !inter.set<h, src: N>) {
  %a = inter.union %g, %h : !inter.set<a, src: N, dst: N, parts g h>
  func.return
}

// -----

// CHECK: the map src leads to U, and that of h to N: the type of U must name it once among its parts
func.func @f(%M : !inter.set<M>, %N : !inter.set<N>, %g : !inter.set<g, src: M>, %h : !inter.set<h, src: N>) {
  %U = inter.union %M, %M : !inter.set<U, parts M M>
  %a = inter.union %h, %g : !inter.set<a, src: U, parts h g>
  func.return
}

// -----

// CHECK: the result set must say where the map k goes: `k: SET`
func.func @f(%g : !inter.set<g, src: N, dst: N>, %i : !inter.rows<g, i64>) {
  %a = inter.attach %g (k = %i) : !inter.set<a, src: N, dst: N, parent: g mono onto>
  func.return
}

// -----

// CHECK: the new set would have two maps src: choose another name
func.func @f(%g : !inter.set<g, src: N, dst: N>, %i : !inter.rows<g, i64>) {
  %a = inter.attach %g (src = %i) : !inter.set<a, src: N, dst: N, parent: g mono onto>
  func.return
}

// -----

// CHECK: map k needs one integer per row, not rows of 2 f32
func.func @f(%g : !inter.set<g, src: N, dst: N>, %i : !inter.rows<g, 2xf32>) {
  %a = inter.attach %g (k = %i) : !inter.set<a, src: N, dst: N, k: N, parent: g mono onto>
  func.return
}

// -----

// CHECK: a bound is rows<unit, i64>, not !inter.rows<g, i64>
func.func @f(%g : !inter.set<g, src: N, dst: N>, %n : !inter.rows<unit, i64>, %i : !inter.rows<g, i64>) {
  %a = inter.interval %g, %n, %i : !inter.set<a, src: N, dst: N, parent: g mono>
  func.return
}

// -----

// CHECK: a size is rows<unit, i64>, not !inter.rows<g, i64>
func.func @f(%g : !inter.set<g, src: N, dst: N>, %i : !inter.rows<g, i64>) {
  %a = inter.sized %i : !inter.set<a>
  func.return
}

// -----

// CHECK: a constant lives on unit, its type says N
func.func @f(%N : !inter.set<N>) {
  %a = inter.const 1.0 : !inter.rows<N, f32>
  func.return
}

// -----

// CHECK: a constant of f32 is written 1.0
func.func @f(%N : !inter.set<N>) {
  %a = inter.const 1 : !inter.rows<unit, f32>
  func.return
}

// -----

// CHECK: a constant of i64 is written an integer
func.func @f(%N : !inter.set<N>) {
  %a = inter.const 1.5 : !inter.rows<unit, i64>
  func.return
}

// -----

// CHECK: a constant of i1 is 0 or 1, not 2
func.func @f(%N : !inter.set<N>) {
  %a = inter.const 2 : !inter.rows<unit, i1>
  func.return
}

// -----

// CHECK: rows of 2x2 take 4 numbers, the table has 3
func.func @f(%N : !inter.set<N>) {
  %a = inter.table [1.0, 2.0, 3.0] : !inter.rows<unit, 2x2xf32>
  func.return
}

// -----

// CHECK: %y is used before its definition
func.func @f(%N : !inter.set<N>, %x : !inter.rows<N, f32>) {
  %a = inter.add %x, %y : !inter.rows<N, f32>
  func.return
}

// -----

// CHECK: the result's rows are 5, the operands give 4
func.func @f(%g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 4xf32>) {
  %a = inter.at %g[src], %x : !inter.rows<g, 5xf32>
  func.return
}

// -----

// CHECK: the result's elements are f64, the operands give f32: write that type, or insert inter.cast
func.func @f(%g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<N, 4xf32>) {
  %a = inter.at %g[src], %x : !inter.rows<g, 4xf64>
  func.return
}

// -----

// CHECK: set g has 0 parts, but there are 1 values: give one per part, in order
func.func @f(%g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<g, f32>) {
  %a = inter.stack %g, %x : !inter.rows<g, f32>
  func.return
}

// -----

// CHECK: set u has 1 parts, there is no part 1
func.func @f(%u : !inter.set<u, parts g>, %x : !inter.rows<u, f32>) {
  %a = inter.part 1 of %u, %x : !inter.rows<g, f32>
  func.return
}

// -----

// CHECK: as_rows takes rows<unit, NxKx..>, not !inter.rows<unit, f32>
func.func @f(%N : !inter.set<N>, %x : !inter.rows<unit, f32>) {
  %a = inter.as_rows %N, %x : !inter.rows<N, f32>
  func.return
}

// -----

// CHECK: letter 'k' stands for 6 and for 5
func.func @f(%N : !inter.set<N>, %x : !inter.rows<N, 6xf32>, %w : !inter.rows<unit, 5x2xf32>, %i : !inter.rows<N, 6xi64>) {
  %a = inter.contract "k,kf->f" %x, %w : !inter.rows<N, 2xf32>
  func.return
}

// -----

// CHECK: 2 letters 'kf' for rows of 6: give one letter per dimension
func.func @f(%N : !inter.set<N>, %x : !inter.rows<N, 6xf32>, %w : !inter.rows<unit, 5x2xf32>, %i : !inter.rows<N, 6xi64>) {
  %a = inter.contract "kf,kf->f" %x, %w : !inter.rows<N, 2xf32>
  func.return
}

// -----

// CHECK: letter 'k' of 'k,gf->gf' occurs in one term only: sum it with inter.row_reduce first
func.func @f(%N : !inter.set<N>, %x : !inter.rows<N, 6xf32>, %w : !inter.rows<unit, 5x2xf32>, %i : !inter.rows<N, 6xi64>) {
  %a = inter.contract "k,gf->gf" %x, %w : !inter.rows<N, 5x2xf32>
  func.return
}

// -----

// CHECK: 'k,kf' is no contraction: write letters like "k,kf->f"
func.func @f(%N : !inter.set<N>, %x : !inter.rows<N, 6xf32>, %w : !inter.rows<unit, 5x2xf32>, %i : !inter.rows<N, 6xi64>) {
  %a = inter.contract "k,kf" %x, %w : !inter.rows<N, 2xf32>
  func.return
}

// -----

// CHECK: a row of 6 numbers (6) cannot be reshaped to 4
func.func @f(%N : !inter.set<N>, %x : !inter.rows<N, 6xf32>, %w : !inter.rows<unit, 5x2xf32>, %i : !inter.rows<N, 6xi64>) {
  %a = inter.reshape %x : !inter.rows<N, 4xf32>
  func.return
}

// -----

// CHECK: rows of 6 do not broadcast to 2x3
func.func @f(%N : !inter.set<N>, %x : !inter.rows<N, 6xf32>, %w : !inter.rows<unit, 5x2xf32>, %i : !inter.rows<N, 6xi64>) {
  %a = inter.broadcast %x : !inter.rows<N, 2x3xf32>
  func.return
}

// -----

// CHECK: [1, 1] is no permutation of the 2 dimensions
func.func @f(%N : !inter.set<N>, %x : !inter.rows<N, 6xf32>, %w : !inter.rows<unit, 5x2xf32>, %i : !inter.rows<N, 6xi64>) {
  %a = inter.transpose %w [1, 1] : !inter.rows<unit, 2x5xf32>
  func.return
}

// -----

// CHECK: slice 2:7:1 of a dimension of 6: 0 <= lo < hi <= 6 and step > 0 are needed
func.func @f(%N : !inter.set<N>, %x : !inter.rows<N, 6xf32>, %w : !inter.rows<unit, 5x2xf32>, %i : !inter.rows<N, 6xi64>) {
  %a = inter.slice %x {dim = 0, lo = 2, hi = 7} : !inter.rows<N, 5xf32>
  func.return
}

// -----

// CHECK: rows of 6 have no dimension 1: dimensions count from 0
func.func @f(%N : !inter.set<N>, %x : !inter.rows<N, 6xf32>, %w : !inter.rows<unit, 5x2xf32>, %i : !inter.rows<N, 6xi64>) {
  %a = inter.row_reduce sum %x [1] : !inter.rows<N, 6xf32>
  func.return
}

// -----

// CHECK: row shapes 6 and 5x2 do not broadcast (aligned right, equal or 1): insert inter.reshape
func.func @f(%N : !inter.set<N>, %x : !inter.rows<N, 6xf32>, %w : !inter.rows<unit, 5x2xf32>, %i : !inter.rows<N, 6xi64>) {
  %a = inter.add %x, %w : !inter.rows<N, 6xf32>
  func.return
}

// -----

// CHECK: operands of types f32 and i64: insert inter.cast
func.func @f(%N : !inter.set<N>, %x : !inter.rows<N, 6xf32>, %w : !inter.rows<unit, 5x2xf32>, %i : !inter.rows<N, 6xi64>) {
  %a = inter.add %x, %i : !inter.rows<N, 6xf32>
  func.return
}

// -----

// CHECK: takes floats, not i64
func.func @f(%N : !inter.set<N>, %x : !inter.rows<N, 6xf32>, %w : !inter.rows<unit, 5x2xf32>, %i : !inter.rows<N, 6xi64>) {
  %a = inter.exp %i : !inter.rows<N, 6xi64>
  func.return
}

// -----

// CHECK: takes 2 operands, got 1
func.func @f(%N : !inter.set<N>, %x : !inter.rows<N, 6xf32>, %w : !inter.rows<unit, 5x2xf32>, %i : !inter.rows<N, 6xi64>) {
  %a = inter.add %x : !inter.rows<N, 6xf32>
  func.return
}

// -----

// CHECK: the condition of where is i1, not f32
func.func @f(%N : !inter.set<N>, %x : !inter.rows<N, 6xf32>, %w : !inter.rows<unit, 5x2xf32>, %i : !inter.rows<N, 6xi64>) {
  %a = inter.where %x, %x, %x : !inter.rows<N, 6xf32>
  func.return
}

// -----

// CHECK: verify.mlir:{{[0-9]+}}:3: property 'slope' expected
func.func @f(%N : !inter.set<N>, %x : !inter.rows<N, 6xf32>, %w : !inter.rows<unit, 5x2xf32>, %i : !inter.rows<N, 6xi64>) {
  %a = inter.leaky_relu %x : !inter.rows<N, 6xf32>
  func.return
}

// -----

// CHECK: reduce last needs `else %y` for groups without a row
func.func @f(%g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<g, 4xf32>, %b : !inter.rows<g, i1>, %i : !inter.rows<g, i64>) {
  %a = inter.reduce last %x over %g along dst : !inter.rows<N, 4xf32>
  func.return
}

// -----

// CHECK: reduce sum of an empty group is known: drop the `else`
func.func @f(%g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<g, 4xf32>, %b : !inter.rows<g, i1>, %i : !inter.rows<g, i64>) {
  %a = inter.reduce sum %x over %g along dst else %x : !inter.rows<N, 4xf32>
  func.return
}

// -----

// CHECK: every is for last, reduce sum takes all rows anyway
func.func @f(%g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<g, 4xf32>, %b : !inter.rows<g, i1>, %i : !inter.rows<g, i64>) {
  %a = inter.reduce sum %x over %g along dst {every} : !inter.rows<N, 4xf32>
  func.return
}

// -----

// CHECK: zero_ties is for max and min, reduce sum has no ties
func.func @f(%g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<g, 4xf32>, %b : !inter.rows<g, i1>, %i : !inter.rows<g, i64>) {
  %a = inter.reduce sum %x over %g along dst {zero_ties} : !inter.rows<N, 4xf32>
  func.return
}

// -----

// CHECK: a mean of i64: insert inter.cast to a float type
func.func @f(%g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<g, 4xf32>, %b : !inter.rows<g, i1>, %i : !inter.rows<g, i64>) {
  %a = inter.reduce mean %i over %g along dst : !inter.rows<N, i64>
  func.return
}

// -----

// CHECK: reduce sum of i1: insert inter.cast to a number type
func.func @f(%g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<g, 4xf32>, %b : !inter.rows<g, i1>, %i : !inter.rows<g, i64>) {
  %a = inter.reduce sum %b over %g along dst : !inter.rows<N, i1>
  func.return
}

// -----

// CHECK: the key is rows<unit, i64>, not !inter.rows<g, i64>
func.func @f(%g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<g, 4xf32>, %b : !inter.rows<g, i1>, %i : !inter.rows<g, i64>) {
  %a = inter.dropout %x, %i over %g {p = 0.5, site = 0} : !inter.rows<g, 4xf32>
  func.return
}

// -----

// CHECK: p is a probability, not 1.5
func.func @f(%g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<g, 4xf32>, %b : !inter.rows<g, i1>, %i : !inter.rows<g, i64>, %k : !inter.rows<unit, i64>) {
  %a = inter.dropout %x, %k over %g {p = 1.5, site = 0} : !inter.rows<g, 4xf32>
  func.return
}

// -----

// CHECK: the number of a row is one i64, not !inter.rows<g, i32>
func.func @f(%g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<g, 4xf32>, %i : !inter.rows<N, i64>, %j : !inter.rows<g, i32>, %k : !inter.rows<unit, i64>) {
  %a = inter.dropout %x, %k over %g as %j {p = 0.5, site = 0} : !inter.rows<g, 4xf32>
  func.return
}

// -----

// CHECK: what has a column is one number a row, not !inter.rows<g, 4xf32>
func.func @f(%g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<g, 4xf32>, %i : !inter.rows<g, i64>, %k : !inter.rows<unit, i64>) {
  %a = inter.dropout %x, %k over %g as %i at %i {p = 0.5, site = 0} : !inter.rows<g, 4xf32>
  func.return
}

// -----

// CHECK: dropout is over at most one set, as at most one number a row at one column
func.func @f(%g : !inter.set<g, src: N, dst: N>, %x : !inter.rows<g, 4xf32>, %i : !inter.rows<N, i64>, %j : !inter.rows<g, i32>, %k : !inter.rows<unit, i64>) {
  %a = "inter.dropout"(%x, %k, %k, %g) <{p = 0.5 : f64, site = 0 : i64}> : (!inter.rows<g, 4xf32>, !inter.rows<unit, i64>, !inter.rows<unit, i64>, !inter.set<g, src: N, dst: N>) -> !inter.rows<g, 4xf32>
  func.return
}

// -----

// CHECK: kind 'mean' is none of sum, max, min, mul
func.func @f(%x : !inter.rows<unit, 4xf32>) {
  %a = inter.all_reduce mean %x : !inter.rows<unit, 4xf32>
  func.return
}
