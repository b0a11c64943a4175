// RUN: gnn-opt %s -p plan-memory --split-input-file | filecheck %s

// The first buffer is read for the last time when the second is written: the third may have its
// place. Results are in use from their step to the end, arguments from the start.
// CHECK: func.func @chain
// CHECK: %y = intra.output {buffer = "y", domain = #intra.domain<N>, first = 3, last = 3} : memref<?x3xf32>
// CHECK-NEXT: %x = intra.input {buffer = "x", domain = #intra.domain<N>, first = 0, last = 0} : memref<?xf32>
// CHECK: %a = intra.alloc {domain = #intra.domain<N>, first = 0, last = 1} : memref<?xf32>
// CHECK-NEXT: %b = intra.alloc {domain = #intra.domain<N>, first = 1, last = 2} : memref<?x8xf32>
// CHECK-NEXT: %c = intra.alloc {domain = #intra.domain<N>, first = 2, last = 3} : memref<?x3xf32>
func.func @chain() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x3xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %a = intra.alloc {domain = #intra.domain<N>} : memref<?xf32>
  %b = intra.alloc {domain = #intra.domain<N>} : memref<?x8xf32>
  %c = intra.alloc {domain = #intra.domain<N>} : memref<?x3xf32>
  intra.traverse %i in %n {
    %v = intra.load %x[%i] : f32
    intra.store %v, %a[%i]
  }
  intra.traverse %i in %n {
    %v = intra.load %a[%i] : f32
    %w = intra.broadcast %v : vector<8xf32>
    intra.store %w, %b[%i]
  }
  intra.traverse %i in %n {
    %v = intra.load %b[%i] : vector<8xf32>
    %w = intra.slice %v {dim = 0, lo = 0, hi = 3, step = 1} : vector<3xf32>
    intra.store %w, %c[%i]
  }
  intra.traverse %i in %n {
    %v = intra.load %c[%i] : vector<3xf32>
    intra.store %v, %y[%i]
  }
  func.return
}

// -----

// Totals are in use while they are added up, and single rows as any others.
// CHECK: func.func @domains
// CHECK: %a = intra.alloc {domain = #intra.domain<N>, first = 0, last = 1}
// CHECK-NEXT: %b = intra.alloc {domain = #intra.domain<g>, first = 1, last = 2}
// CHECK-NEXT: %c = intra.alloc {first = 2, last = 3}
func.func @domains() attributes {intra.phase} {
  %y = intra.output {buffer = "y"} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %m = intra.size {domain = #intra.domain<g>} : index
  %one = intra.size : index
  %src = intra.index_map {domain = #intra.domain<g>, path = "src"} : memref<?xi32>
  %a = intra.alloc {domain = #intra.domain<N>} : memref<?xf32>
  %b = intra.alloc {domain = #intra.domain<g>} : memref<?xf32>
  %c = intra.alloc : memref<?xf32>
  intra.traverse %i in %n {
    %v = intra.load %x[%i] : f32
    intra.store %v, %a[%i]
  }
  intra.traverse %i in %m {
    %j = intra.lookup %src[%i] : index
    %v = intra.load %a[%j] : f32
    intra.store %v, %b[%i]
  }
  intra.traverse %i in %m {
    %v = intra.load %b[%i] : f32
    intra.total %v, %c {kind = "sum"}
  }
  intra.traverse %i in %one {
    %v = intra.load %c[%i] : f32
    intra.store %v, %y[%i]
  }
  func.return
}

// -----

// A buffer lives as long as its views.
// CHECK: func.func @views
// CHECK: %a = intra.alloc {domain = #intra.domain<N>, first = 0, last = 2}
// CHECK-NEXT: %b = intra.alloc {domain = #intra.domain<N>, first = 1, last = 2}
func.func @views() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x4xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x2x2xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %a = intra.alloc {domain = #intra.domain<N>} : memref<?x2x2xf32>
  %b = intra.alloc {domain = #intra.domain<N>} : memref<?x2x2xf32>
  %v = intra.view %a {domain = #intra.domain<N>} : memref<?x4xf32>
  intra.traverse %i in %n {
    %r = intra.load %x[%i] : vector<2x2xf32>
    intra.store %r, %a[%i]
  }
  intra.traverse %i in %n {
    %r = intra.load %x[%i] : vector<2x2xf32>
    intra.store %r, %b[%i]
  }
  intra.traverse %i in %n {
    %r = intra.load %v[%i] : vector<4xf32>
    %s = intra.load %b[%i] : vector<2x2xf32>
    %t = intra.reshape %s : vector<4xf32>
    %u = intra.apply %r, %t {fn = "add"} : vector<4xf32>
    intra.store %u, %y[%i]
  }
  func.return
}
