// RUN: gnn-opt %s --verify-diagnostics --parsing-diagnostics --split-input-file | filecheck %s

// Each message says what is wrong and how to mend it.

// CHECK: the rows of N[src] are those of the set that src leads to: name that set
func.func @f() attributes {intra.phase} {
  %n = intra.size {domain = #intra.domain<N[src]>} : index
  func.return
}

// -----

// CHECK: a pair index needs a domain of several keys; one key is an index_map
func.func @f() attributes {intra.phase} {
  %t = intra.pair_index {domain = #intra.domain<g>} : memref<?xi32>
  func.return
}

// -----

// CHECK: intra.offsets gives memref<?xi64>, not memref<?xi32>
func.func @f() attributes {intra.phase} {
  %t = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi32>
  func.return
}

// -----

// CHECK: name the paths to group by, as in `along = ["dst"]`
func.func @f() attributes {intra.phase} {
  %t = intra.members {domain = #intra.domain<g>, along = []} : memref<?xi32>
  func.return
}

// -----

// CHECK: intra.size has no property 'domian': drop it
func.func @f() attributes {intra.phase} {
  %n = intra.size {domian = #intra.domain<N>} : index
  func.return
}

// -----

// CHECK: a buffer is memref<?x..> with constant row dimensions and rows of f32, f64, i32, i64 or i1, not memref<4x3xf32>
func.func @f() attributes {intra.phase} {
  %x = intra.alloc : memref<4x3xf32>
  func.return
}

// -----

// CHECK: a row of 3 numbers needs as many, not 2
func.func @f() attributes {intra.phase} {
  %x = intra.table {value = [1.0, 2.0]} : memref<?x3xf64>
  func.return
}

// -----

// CHECK: a row of 8 numbers has no 3 from number 6 on
func.func @f() attributes {intra.phase} {
  %x = intra.alloc {domain = #intra.domain<N>} : memref<?x2x4xf64>
  %y = intra.columns %x {first = 6} : memref<?x3xf64>
  func.return
}

// -----

// CHECK: columns keep the element type: store a cast into another buffer instead
func.func @f() attributes {intra.phase} {
  %x = intra.alloc {domain = #intra.domain<N>} : memref<?x8xf64>
  %y = intra.columns %x {first = 0} : memref<?x3xf32>
  func.return
}

// -----

// CHECK: columns are those of an intra.alloc, which alone may lie between others
func.func @f() attributes {intra.phase} {
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x8xf64>
  %y = intra.columns %x {first = 0} : memref<?x3xf64>
  func.return
}

// -----

// CHECK: a view is of whole rows: take the columns of what it is to be of
func.func @f() attributes {intra.phase} {
  %x = intra.alloc {domain = #intra.domain<N>} : memref<?x8xf64>
  %y = intra.columns %x {first = 0} : memref<?x4xf64>
  %z = intra.view %y {domain = #intra.domain<N>} : memref<?x2x2xf64>
  func.return
}

// -----

// CHECK: a part has the type of its buffer, memref<?x3xf64>, not memref<?x2xf64>
func.func @f() attributes {intra.phase} {
  %x = intra.alloc : memref<?x3xf64>
  %y = intra.part %x : memref<?x2xf64>
  func.return
}

// -----

// CHECK: rows of 6 numbers cannot be seen as rows of 4: one must divide the other
func.func @f() attributes {intra.phase} {
  %x = intra.alloc : memref<?x6xf64>
  %y = intra.view %x : memref<?x4xf64>
  func.return
}

// -----

// CHECK: 4 pieces of 2 numbers are no row of 6
func.func @f() attributes {intra.phase} {
  %x = intra.alloc : memref<?x6xf32>
  %y = intra.view %x {pieces = 4} : memref<?x2xf32>
  func.return
}

// -----

// CHECK: pieces of a single row are rows of no set: drop the domain
func.func @f() attributes {intra.phase} {
  %x = intra.alloc : memref<?x6xf32>
  %y = intra.view %x {domain = #intra.domain<N>, pieces = 3} : memref<?x2xf32>
  func.return
}

// -----

// CHECK: a row has one piece or more
func.func @f() attributes {intra.phase} {
  %n = intra.pieces {count = 0} : index
  func.return
}

// -----

// CHECK: a view keeps the element type: store a cast into another buffer instead
func.func @f() attributes {intra.phase} {
  %x = intra.alloc : memref<?x6xf64>
  %y = intra.view %x : memref<?x6xf32>
  func.return
}

// -----

// CHECK: %y is used before its definition
func.func @f() attributes {intra.phase} {
  %x = intra.view %y : memref<?x4xf64>
  func.return
}

// -----

// CHECK: intra.count gives i64, not f64: use intra.cast for another type
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
    %c = intra.count %n : f64
  }
  func.return
}

// -----

// CHECK: the result is a row of memref<?x3xf64>: vector<3xf64>, not vector<4xf64>
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  %x = intra.input {buffer = "x"} : memref<?x3xf64>
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<4xf64>
  }
  func.return
}

// -----

// CHECK: `else` must be a row of the buffer, vector<3xf64>, not f64
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  %x = intra.input {buffer = "x"} : memref<?x3xf64>
  intra.traverse %i in %n {
    %c = intra.const {value = 0.0 : f64} : f64
    %a = intra.load %x[%i] else %c : vector<3xf64>
  }
  func.return
}

// -----

// CHECK: inputs and tables are only read: write to an intra.output or intra.alloc
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  %x = intra.input {buffer = "x"} : memref<?xf64>
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : f64
    intra.store %a, %x[%i]
  }
  func.return
}

// -----

// CHECK: a nest stores its own row only
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  %x = intra.alloc : memref<?xf64>
  intra.traverse %i in %n {
    %c = intra.const {value = 0.0 : f64} : f64
    %j = intra.first : index
    intra.store %c, %x[%j]
  }
  func.return
}

// -----

// CHECK: intra.store stands in the nest itself: move it out of the segment
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  %x = intra.alloc : memref<?xf64>
  %o = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  intra.traverse %i in %n {
    %s = intra.segment %p in %o[%i] ["sum"] {
      %c = intra.const {value = 0.0 : f64} : f64
      intra.store %c, %x[%i]
      intra.yield %c
    } : f64
  }
  func.return
}

// -----

// CHECK: in a segment all members are multiplied with one matrix
func.func @f() attributes {intra.phase} {
  %n = intra.size {domain = #intra.domain<N>} : index
  %x = intra.alloc {domain = #intra.domain<g>} : memref<?x2xf64>
  %w = intra.alloc {domain = #intra.domain<R>} : memref<?x2x3xf64>
  %o = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %m = intra.members {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi32>
  %r = intra.index_map {domain = #intra.domain<g>, path = "rel"} : memref<?xi32>
  intra.traverse %i in %n {
    %s = intra.segment %p in %o[%i] ["sum"] {
      %e = intra.lookup %m[%p] : index
      %k = intra.lookup %r[%e] : index
      %a = intra.load %x[%e] : vector<2xf64>
      %b = intra.matmul %a, %w[%k] {spec = "k,kf->f"} : vector<3xf64>
      intra.yield %b
    } : vector<3xf64>
  }
  func.return
}

// -----

// CHECK: nests do not nest: use intra.segment inside
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
    intra.traverse %j in %n {
    }
  }
  func.return
}

// -----

// CHECK: a nest has two properties, `schedule = #intra.schedule<..>` and `pipeline = #intra.pipeline<..>`
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
  } {block = 4}
  func.return
}

// -----

// CHECK: the rows of N are not those of the buffer, g: find the row with intra.lookup or intra.first
func.func @f() attributes {intra.phase} {
  %n = intra.size {domain = #intra.domain<N>} : index
  %x = intra.input {buffer = "x", domain = #intra.domain<g>} : memref<?xf64>
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : f64
  }
  func.return
}

// -----

// CHECK: the rows of N are not those of the buffer, the single row: find the row with intra.lookup or intra.first
func.func @f() attributes {intra.phase} {
  %n = intra.size {domain = #intra.domain<N>} : index
  %x = intra.input {buffer = "x"} : memref<?xf64>
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : f64
  }
  func.return
}

// -----

// CHECK: intra.index_map is of g, the nest runs over N
func.func @f() attributes {intra.phase} {
  %n = intra.size {domain = #intra.domain<N>} : index
  %t = intra.index_map {domain = #intra.domain<g>, path = "src"} : memref<?xi32>
  intra.traverse %i in %n {
    %a = intra.lookup %t[%i] : index
  }
  func.return
}

// -----

// CHECK: kind 'last' is none of sum, max, min, mul
func.func @f() attributes {intra.phase} {
  %n = intra.size {domain = #intra.domain<N>} : index
  %x = intra.alloc : memref<?xf64>
  intra.traverse %i in %n {
    %c = intra.const {value = 0.0 : f64} : f64
    intra.total %c, %x {kind = "last"}
  }
  func.return
}

// -----

// CHECK: a total needs a buffer of a single row, this is over N
func.func @f() attributes {intra.phase} {
  %n = intra.size {domain = #intra.domain<N>} : index
  %x = intra.alloc {domain = #intra.domain<N>} : memref<?xf64>
  intra.traverse %i in %n {
    %c = intra.const {value = 0.0 : f64} : f64
    intra.total %c, %x {kind = "sum"}
  }
  func.return
}

// -----

// CHECK: truth values are not reduced: cast them to numbers first
func.func @f() attributes {intra.phase} {
  %n = intra.size {domain = #intra.domain<N>} : index
  %x = intra.alloc : memref<?xi1>
  intra.traverse %i in %n {
    %c = intra.const {value = 1 : i64} : i1
    intra.total %c, %x {kind = "max"}
  }
  func.return
}

// -----

// CHECK: a segment has one kind and one result for each yielded value, here are 2 kinds, 1 results and 1 values
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  %o = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  intra.traverse %i in %n {
    %s = intra.segment %p in %o[%i] ["sum", "max"] {
      %c = intra.const {value = 0.0 : f64} : f64
      intra.yield %c
    } : f64
  }
  func.return
}

// -----

// CHECK: kind 'mean' is none of sum, max, min, mul, last
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  %o = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  intra.traverse %i in %n {
    %s = intra.segment %p in %o[%i] ["mean"] {
      %c = intra.const {value = 0.0 : f64} : f64
      intra.yield %c
    } : f64
  }
  func.return
}

// -----

// CHECK: yields f64 for a result f32
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  %o = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  intra.traverse %i in %n {
    %s = intra.segment %p in %o[%i] ["sum"] {
      %c = intra.const {value = 0.0 : f64} : f64
      intra.yield %c
    } : f32
  }
  func.return
}

// -----

// CHECK: positions of g by dst are looked up in the members of g by src: use the table of the same groups
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  %x = intra.input {buffer = "x", domain = #intra.domain<g>} : memref<?xf64>
  %o = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %m = intra.members {domain = #intra.domain<g>, along = ["src"]} : memref<?xi32>
  intra.traverse %i in %n {
    %s = intra.segment %p in %o[%i] ["sum"] {
      %j = intra.lookup %m[%p] : index
      %c = intra.load %x[%j] : f64
      intra.yield %c
    } : f64
  }
  func.return
}

// -----

// CHECK: a table of rows takes no position: use intra.members or intra.member_map
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf64>
  %o = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %m = intra.index_map {domain = #intra.domain<g>, path = "src"} : memref<?xi32>
  intra.traverse %i in %n {
    %s = intra.segment %p in %o[%i] ["sum"] {
      %j = intra.lookup %m[%p] : index
      %c = intra.load %x[%j] : f64
      intra.yield %c
    } : f64
  }
  func.return
}

// -----

// CHECK: the rows of "x" lie in the order of other groups
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  %x = intra.input {buffer = "x", domain = #intra.domain<g>, along = ["src"]} : memref<?xf64>
  %o = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  intra.traverse %i in %n {
    %s = intra.segment %p in %o[%i] ["sum"] {
      %c = intra.load %x[%p] : f64
      intra.yield %c
    } : f64
  }
  func.return
}

// -----

// CHECK: the rows of "x" lie in the order of groups: read them at a position
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  %x = intra.input {buffer = "x", domain = #intra.domain<g>, along = ["dst"]} : memref<?xf64>
  %o = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %m = intra.members {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi32>
  intra.traverse %i in %n {
    %s = intra.segment %p in %o[%i] ["sum"] {
      %e = intra.lookup %m[%p] : index
      %c = intra.load %x[%e] : f64
      intra.yield %c
    } : f64
  }
  func.return
}

// -----

// CHECK: intra.load reads a position: look it up in intra.members first
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  %x = intra.input {buffer = "x", domain = #intra.domain<g>} : memref<?xf64>
  %o = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  intra.traverse %i in %n {
    %s = intra.segment %p in %o[%i] ["sum"] {
      %c = intra.load %x[%p] : f64
      intra.yield %c
    } : f64
  }
  func.return
}

// -----

// CHECK: a constant of f64 is spelled like `1.0 : f64`
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
    %c = intra.const {value = 1 : i64} : f64
  }
  func.return
}

// -----

// CHECK: 'swish' is not in the pointwise vocabulary (dialects/pointwise)
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
    %c = intra.const {value = 1.0 : f64} : f64
    %d = intra.apply %c {fn = "swish"} : f64
  }
  func.return
}

// -----

// CHECK: add takes 2 operands, got 1
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
    %c = intra.const {value = 1.0 : f64} : f64
    %d = intra.apply %c {fn = "add"} : f64
  }
  func.return
}

// -----

// CHECK: row shapes (3,), (2,) do not broadcast: reshape or broadcast one
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
    %c = intra.const {value = 1.0 : f64} : vector<3xf64>
    %d = intra.const {value = 1.0 : f64} : vector<2xf64>
    %e = intra.apply %c, %d {fn = "add"} : vector<3xf64>
  }
  func.return
}

// -----

// CHECK: operands broadcast to (3,), the result is (1,)
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
    %c = intra.const {value = 1.0 : f64} : vector<3xf64>
    %e = intra.apply %c {fn = "exp"} : vector<1xf64>
  }
  func.return
}

// -----

// CHECK: rows of f64 and f32 do not mix: add intra.cast
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
    %c = intra.const {value = 1.0 : f64} : f64
    %d = intra.const {value = 1.0 : f64} : f32
    %e = intra.apply %c, %d {fn = "add"} : f64
  }
  func.return
}

// -----

// CHECK: lt of these operands gives i1, the result is f64
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
    %c = intra.const {value = 1.0 : f64} : f64
    %e = intra.apply %c, %c {fn = "lt"} : f64
  }
  func.return
}

// -----

// CHECK: exp takes f32, f64, not i64: cast first
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
    %c = intra.const {value = 1 : i64} : i64
    %e = intra.apply %c {fn = "exp"} : i64
  }
  func.return
}

// -----

// CHECK: the condition of where is i1, not f64: compare first
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
    %c = intra.const {value = 1.0 : f64} : f64
    %e = intra.apply %c, %c, %c {fn = "where"} : f64
  }
  func.return
}

// -----

// CHECK: leaky_relu needs `params = {slope = 0.1 : f64}`
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
    %c = intra.const {value = 1.0 : f64} : f64
    %e = intra.apply %c {fn = "leaky_relu"} : f64
  }
  func.return
}

// -----

// CHECK: exp has no parameter 'base': drop it
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
    %c = intra.const {value = 1.0 : f64} : f64
    %e = intra.apply %c {fn = "exp", params = {base = 2.0 : f64}} : f64
  }
  func.return
}

// -----

// CHECK: a cast keeps the row shape (3,), the result is ()
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
    %c = intra.const {value = 1.0 : f64} : vector<3xf64>
    %e = intra.cast %c : f32
  }
  func.return
}

// -----

// CHECK: a row of 3 numbers cannot be reshaped to (2,)
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
    %c = intra.const {value = 1.0 : f64} : vector<3xf64>
    %e = intra.reshape %c : vector<2xf64>
  }
  func.return
}

// -----

// CHECK: [0, 0] is no permutation of 2 dimensions
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
    %c = intra.const {value = 1.0 : f64} : vector<3x3xf64>
    %e = intra.transpose %c {perm = [0, 0]} : vector<3x3xf64>
  }
  func.return
}

// -----

// CHECK: [1, 4) by 1 is no slice of 3 numbers: 0 <= lo < hi <= size
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
    %c = intra.const {value = 1.0 : f64} : vector<3xf64>
    %e = intra.slice %c {dim = 0, lo = 1, hi = 4, step = 1} : vector<3xf64>
  }
  func.return
}

// -----

// CHECK: rows (2, 3), (2, 2) differ in another dimension than 0: reshape them
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
    %c = intra.const {value = 1.0 : f64} : vector<2x3xf64>
    %d = intra.const {value = 1.0 : f64} : vector<2x2xf64>
    %e = intra.concat %c, %d {dim = 0} : vector<4x3xf64>
  }
  func.return
}

// -----

// CHECK: the result is a row of shape (5,), not (4,)
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
    %c = intra.const {value = 1.0 : f64} : vector<3xf64>
    %d = intra.const {value = 1.0 : f64} : vector<2xf64>
    %e = intra.concat %c, %d {dim = 0} : vector<4xf64>
  }
  func.return
}

// -----

// CHECK: [1, 1] are not distinct dimensions of a row of 2
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
    %c = intra.const {value = 1.0 : f64} : vector<2x3xf64>
    %e = intra.fold %c {kind = "sum", dims = [1, 1]} : vector<2xf64>
  }
  func.return
}

// -----

// CHECK: spec 'kf' is not like "hk,hk->h"
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
    %c = intra.const {value = 1.0 : f64} : vector<2x3xf64>
    %e = intra.dot %c, %c {spec = "kf"} : f64
  }
  func.return
}

// -----

// CHECK: letter 'k' stands for 2 and 3
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
    %c = intra.const {value = 1.0 : f64} : vector<2xf64>
    %d = intra.const {value = 1.0 : f64} : vector<3xf64>
    %e = intra.dot %c, %d {spec = "k,k->"} : f64
  }
  func.return
}

// -----

// CHECK: letters of the result 'f' must occur in an operand
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
    %c = intra.const {value = 1.0 : f64} : vector<2xf64>
    %e = intra.dot %c, %c {spec = "k,k->f"} : vector<2xf64>
  }
  func.return
}

// -----

// CHECK: p is a probability, not 1.5
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  %k = intra.input {buffer = "key"} : memref<?xi64>
  intra.traverse %i in %n {
    %c = intra.const {value = 1.0 : f64} : vector<2xf64>
    %key = intra.load %k[%i] : i64
    %e = intra.dropout %c, %key, %i {p = 1.5 : f64, site = 0 : i64} : vector<2xf64>
  }
  func.return
}

// -----

// CHECK: what has a column is one number, not vector<2xf64>
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  %k = intra.input {buffer = "key"} : memref<?xi64>
  intra.traverse %i in %n {
    %c = intra.const {value = 1.0 : f64} : vector<2xf64>
    %key = intra.load %k[%i] : i64
    %e = intra.dropout %c, %key, %i, %key {p = 0.5 : f64, site = 0 : i64} : vector<2xf64>
  }
  func.return
}

// -----

// CHECK: the row is an index or an i64, not f64
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  %k = intra.input {buffer = "key"} : memref<?xi64>
  intra.traverse %i in %n {
    %c = intra.const {value = 1.0 : f64} : f64
    %key = intra.load %k[%i] : i64
    %e = intra.dropout %c, %key, %c {p = 0.5 : f64, site = 0 : i64} : f64
  }
  func.return
}

// -----

// CHECK: spec 'k,kf->k' is not [l][b]k,{[b]kf in any order}->[l][b]f
func.func @f() attributes {intra.phase} {
  %n = intra.size {domain = #intra.domain<N>} : index
  %W = intra.input {buffer = "W"} : memref<?x2x3xf64>
  intra.traverse %i in %n {
    %c = intra.const {value = 1.0 : f64} : vector<2xf64>
    %e = intra.matmul %c, %W {spec = "k,kf->k"} : vector<2xf64>
  }
  func.return
}

// -----

// CHECK: the matrix of a product needs a buffer of a single row, this is over R
func.func @f() attributes {intra.phase} {
  %n = intra.size {domain = #intra.domain<N>} : index
  %W = intra.input {buffer = "W", domain = #intra.domain<R>} : memref<?x2x3xf64>
  intra.traverse %i in %n {
    %c = intra.const {value = 1.0 : f64} : vector<2xf64>
    %e = intra.matmul %c, %W {spec = "k,kf->f"} : vector<3xf64>
  }
  func.return
}

// -----

// CHECK: products are of f32 or f64, not i64: cast first
func.func @f() attributes {intra.phase} {
  %n = intra.size {domain = #intra.domain<N>} : index
  %W = intra.input {buffer = "W"} : memref<?x2x3xi64>
  intra.traverse %i in %n {
    %c = intra.const {value = 1 : i64} : vector<2xi64>
    %e = intra.matmul %c, %W {spec = "k,kf->f"} : vector<3xi64>
  }
  func.return
}

// -----

// CHECK: spec 'bk,f->bkf' is not [l][b]k,[l][b]f->{[b]kf in any order}
func.func @f() attributes {intra.phase} {
  %n = intra.size {domain = #intra.domain<N>} : index
  %s = intra.alloc : memref<?x2x3x3xf64>
  intra.traverse %i in %n {
    %c = intra.const {value = 1.0 : f64} : vector<2x3xf64>
    %d = intra.const {value = 1.0 : f64} : vector<3xf64>
    intra.outer %c, %d, %s {spec = "bk,f->bkf"}
  }
  func.return
}

// -----

// CHECK: the sum is a row of shape (2, 3), not (3, 2)
func.func @f() attributes {intra.phase} {
  %n = intra.size {domain = #intra.domain<N>} : index
  %s = intra.alloc : memref<?x3x2xf64>
  intra.traverse %i in %n {
    %c = intra.const {value = 1.0 : f64} : vector<2xf64>
    %d = intra.const {value = 1.0 : f64} : vector<3xf64>
    intra.outer %c, %d, %s {spec = "k,f->kf"}
  }
  func.return
}

// -----

// CHECK: intra.members stands in a nest: move it to the phase, above the nest
func.func @f() attributes {intra.phase} {
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %members = intra.members {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi32>
  }
  func.return
}

// -----

// CHECK: vectors have 16, 32 or 64 bytes, not 33
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
  } {schedule = #intra.schedule<vector_bytes = 33, block = 48, grain = 1, chunks = 1, row_cost = 4, prefetch = 0, panel = 3>}
  func.return
}

// -----

// CHECK: masked of a schedule is 0 or 1, not 2
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
  } {schedule = #intra.schedule<vector_bytes = 32, block = 48, grain = 1, chunks = 1, row_cost = 4, prefetch = 0, panel = 3, masked = 2>}
  func.return
}

// -----

// CHECK: block of a schedule is 1 or more, not 0
func.func @f() attributes {intra.phase} {
  %n = intra.size : index
  intra.traverse %i in %n {
  } {schedule = #intra.schedule<vector_bytes = 32, block = 0, grain = 1, chunks = 1, row_cost = 4, prefetch = 0, panel = 3>}
  func.return
}

// -----

// CHECK: intra.apply stands in no stage
func.func @f() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %a = intra.stage {
      %b = intra.load %x[%i] : f32
      intra.yield %b
    } : f32
    %c = intra.apply %a {fn = "exp"} : f32
    intra.stage {
      intra.store %c, %y[%i]
      intra.yield
    }
  }
  func.return
}

// -----

// CHECK: a stage has one result of its type for each yielded value
func.func @f() attributes {intra.phase} {
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    intra.stage {
      %b = intra.load %x[%i] : f32
      intra.yield %b
    }
  }
  func.return
}

// -----

// CHECK: one group of a nest at most is reduced in pieces, its own, whose body does not depend on the row
func.func @f() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  intra.traverse %i in %n {
    intra.stage {
      %s = intra.segment %p in %offsets[%i] ["sum"] in_pieces {
        %a = intra.load %x[%i] : f32
        intra.yield %a
      } : f32
      intra.store %s, %y[%i]
      intra.yield
    }
  }
  func.return
}
