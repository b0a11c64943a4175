// RUN: gnn-opt %s -p interleave-rows --split-input-file | filecheck %s

// A wide and a narrow row that a segment reads at one end lie in one row, the wide one first.
// CHECK-LABEL: func.func @attention
// CHECK: %[[ALL:.*]] = intra.alloc {domain = #intra.domain<N>} : memref<?x20xf32>
// CHECK: %s = intra.columns %[[ALL]] {first = 16} : memref<?x4xf32>
// CHECK: %h = intra.columns %[[ALL]] {first = 0} : memref<?x16xf32>
// CHECK: intra.store %{{.*}}, %h[%i]
// CHECK: intra.store %{{.*}}, %s[%i]
// CHECK: intra.load %h[
// CHECK: intra.load %s[
func.func @attention() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x4xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x16xf32>
  %z = intra.input {buffer = "z", domain = #intra.domain<N>} : memref<?x4xf32>
  %s = intra.alloc {domain = #intra.domain<N>} : memref<?x4xf32>
  %h = intra.alloc {domain = #intra.domain<N>} : memref<?x16xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %ptr = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  intra.traverse %i in %n {
    intra.stage {
      %a = intra.load %x[%i] : vector<16xf32>
      intra.store %a, %h[%i]
      %b = intra.load %z[%i] : vector<4xf32>
      intra.store %b, %s[%i]
      intra.yield
    }
  }
  intra.traverse %i in %n {
    intra.stage {
      %r = intra.segment %p in %ptr[%i] ["sum"] {
        %j = intra.lookup %src[%p] : index
        %a = intra.load %h[%j] : vector<16xf32>
        %b = intra.load %s[%j] : vector<4xf32>
        %c = intra.reshape %b : vector<4x1xf32>
        %d = intra.reshape %a : vector<4x4xf32>
        %e = intra.apply %c, %d {fn = "mul"} : vector<4x4xf32>
        %f = intra.fold %e {kind = "sum", dims = [1]} : vector<4xf32>
        intra.yield %f
      } : vector<4xf32>
      intra.store %r, %y[%i]
      intra.yield
    }
  }
  func.return
}

// -----

// Single numbers lie beside each other, not beside a wide row. What is read at the nest's own row
// lies where it did.
// CHECK-LABEL: func.func @numbers
// CHECK: %[[ALL:.*]] = intra.alloc {domain = #intra.domain<N>} : memref<?x2xf32>
// CHECK: %s = intra.columns %[[ALL]] {first = 0} : memref<?xf32>
// CHECK: %t = intra.columns %[[ALL]] {first = 1} : memref<?xf32>
// CHECK: %h = intra.alloc {domain = #intra.domain<N>} : memref<?x16xf32>
// CHECK: %o = intra.alloc {domain = #intra.domain<N>} : memref<?xf32>
func.func @numbers() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x16xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x16xf32>
  %s = intra.alloc {domain = #intra.domain<N>} : memref<?xf32>
  %t = intra.alloc {domain = #intra.domain<N>} : memref<?xf32>
  %h = intra.alloc {domain = #intra.domain<N>} : memref<?x16xf32>
  %o = intra.alloc {domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %ptr = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  intra.traverse %i in %n {
    intra.stage {
      %a = intra.load %x[%i] : vector<16xf32>
      intra.store %a, %h[%i]
      %b = intra.fold %a {kind = "sum", dims = [0]} : f32
      intra.store %b, %s[%i]
      %c = intra.fold %a {kind = "max", dims = [0]} : f32
      intra.store %c, %t[%i]
      %d = intra.apply %b, %c {fn = "add"} : f32
      intra.store %d, %o[%i]
      intra.yield
    }
  }
  intra.traverse %i in %n {
    intra.stage {
      %own = intra.load %o[%i] : f32
      %r = intra.segment %p in %ptr[%i] ["sum"] {
        %j = intra.lookup %src[%p] : index
        %a = intra.load %h[%j] : vector<16xf32>
        %b = intra.load %s[%j] : f32
        %c = intra.load %t[%j] : f32
        %d = intra.apply %b, %c {fn = "mul"} : f32
        %e = intra.apply %d, %own {fn = "mul"} : f32
        %f = intra.apply %e, %a {fn = "mul"} : vector<16xf32>
        intra.yield %f
      } : vector<16xf32>
      intra.store %r, %y[%i]
      intra.yield
    }
  }
  func.return
}

// -----

// A wide row that would be kept longer, so that more is in use at once, stays alone; and one that a
// product writes where it lies.
// CHECK-LABEL: func.func @alone
// CHECK-NOT: intra.columns
func.func @alone() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x16xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x16xf32>
  %W = intra.input {buffer = "W"} : memref<?x16x16xf32>
  %s = intra.alloc {domain = #intra.domain<N>} : memref<?x4xf32>
  %w = intra.alloc {domain = #intra.domain<N>} : memref<?x16x4xf32>
  %v = intra.alloc {domain = #intra.domain<N>} : memref<?x4xf32>
  %h = intra.alloc {domain = #intra.domain<N>} : memref<?x16xf32>
  %q = intra.alloc {domain = #intra.domain<N>} : memref<?x16xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %ptr = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  intra.traverse %i in %n {
    intra.stage {
      %a = intra.load %x[%i] : vector<16xf32>
      %b = intra.reshape %a : vector<4x4xf32>
      %c = intra.fold %b {kind = "sum", dims = [1]} : vector<4xf32>
      intra.store %c, %s[%i]
      %g = intra.reshape %a : vector<16x1xf32>
      %d = intra.broadcast %g : vector<16x4xf32>
      intra.store %d, %w[%i]
      intra.yield
    }
  }
  intra.traverse %i in %n {
    intra.stage {
      %a = intra.load %w[%i] : vector<16x4xf32>
      %b = intra.fold %a {kind = "sum", dims = [0]} : vector<4xf32>
      intra.store %b, %v[%i]
      intra.yield
    }
  }
  intra.traverse %i in %n {
    intra.stage {
      %a = intra.load %v[%i] : vector<4xf32>
      %b = intra.reshape %a : vector<4x1xf32>
      %c = intra.load %x[%i] : vector<16xf32>
      %d = intra.reshape %c : vector<4x4xf32>
      %e = intra.apply %b, %d {fn = "mul"} : vector<4x4xf32>
      %f = intra.reshape %e : vector<16xf32>
      intra.store %f, %h[%i]
      intra.yield
    }
  }
  intra.traverse %i in %n {
    %a = intra.load %x[%i] : vector<16xf32>
    %b = intra.matmul %a, %W {spec = "k,kf->f"} : vector<16xf32>
    intra.store %b, %q[%i]
  }
  intra.traverse %i in %n {
    intra.stage {
      %r = intra.segment %p in %ptr[%i] ["sum"] {
        %j = intra.lookup %src[%p] : index
        %a = intra.load %h[%j] : vector<16xf32>
        %b = intra.load %s[%j] : vector<4xf32>
        %e = intra.load %q[%j] : vector<16xf32>
        %m = intra.apply %a, %e {fn = "mul"} : vector<16xf32>
        %c = intra.reshape %b : vector<4x1xf32>
        %d = intra.reshape %m : vector<4x4xf32>
        %f = intra.apply %c, %d {fn = "mul"} : vector<4x4xf32>
        %g = intra.reshape %f : vector<16xf32>
        intra.yield %g
      } : vector<16xf32>
      intra.store %r, %y[%i]
      intra.yield
    }
  }
  func.return
}

// -----

// What a nest reads at both ends of its edges lies beside each other once.
// CHECK-LABEL: func.func @both_ends
// CHECK: %[[ALL:.*]] = intra.alloc {domain = #intra.domain<N>} : memref<?x20xf32>
// CHECK-NEXT: intra.columns %[[ALL]] {first = 16} : memref<?x4xf32>
// CHECK-NEXT: intra.columns %[[ALL]] {first = 0} : memref<?x16xf32>
// CHECK-NOT: intra.columns
func.func @both_ends() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<g>} : memref<?x16xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x16xf32>
  %z = intra.input {buffer = "z", domain = #intra.domain<N>} : memref<?x4xf32>
  %s = intra.alloc {domain = #intra.domain<N>} : memref<?x4xf32>
  %h = intra.alloc {domain = #intra.domain<N>} : memref<?x16xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %m = intra.size {domain = #intra.domain<g>} : index
  %src = intra.index_map {domain = #intra.domain<g>, path = "src"} : memref<?xi32>
  %dst = intra.index_map {domain = #intra.domain<g>, path = "dst"} : memref<?xi32>
  intra.traverse %i in %n {
    intra.stage {
      %a = intra.load %x[%i] : vector<16xf32>
      intra.store %a, %h[%i]
      %b = intra.load %z[%i] : vector<4xf32>
      intra.store %b, %s[%i]
      intra.yield
    }
  }
  intra.traverse %i in %m {
    intra.stage {
      %j = intra.lookup %src[%i] : index
      %k = intra.lookup %dst[%i] : index
      %a = intra.load %h[%j] : vector<16xf32>
      %b = intra.load %s[%j] : vector<4xf32>
      %c = intra.load %h[%k] : vector<16xf32>
      %d = intra.load %s[%k] : vector<4xf32>
      %e = intra.apply %a, %c {fn = "mul"} : vector<16xf32>
      %f = intra.apply %b, %d {fn = "mul"} : vector<4xf32>
      %g = intra.reshape %f : vector<4x1xf32>
      %p = intra.reshape %e : vector<4x4xf32>
      %q = intra.apply %g, %p {fn = "mul"} : vector<4x4xf32>
      %r = intra.reshape %q : vector<16xf32>
      intra.store %r, %y[%i]
      intra.yield
    }
  }
  func.return
}
