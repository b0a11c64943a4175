// RUN: gnn-opt %s -p fuse-traversals --split-input-file | filecheck %s

// Rows are under way between start and wait. %h, which the message does not need, is merged with
// its reader in flight, and not the reader with %h: the message would start later. What reads the
// rows that arrive stays behind the wait, though it reads %l at its own row.
// CHECK-LABEL: func.func @forward
// CHECK: intra.traverse
// CHECK: intra.store %{{.*}}, %from
// CHECK: intra.move_start %from, %to {plan = "halo"}
// CHECK-NEXT: intra.traverse
// CHECK: {fn = "exp"}
// CHECK: {fn = "sin"}
// CHECK: intra.store %{{.*}}, %l
// CHECK: intra.move_wait %to {plan = "halo"}
// CHECK-NEXT: intra.traverse
// CHECK: intra.load %l
// CHECK: intra.load %to
// CHECK-NOT: intra.traverse
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?x3xf32>
  %z = intra.output {buffer = "z", domain = #intra.domain<N>} : memref<?x3xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x3xf32>
  %c = intra.input {buffer = "c", domain = #intra.domain<R>} : memref<?x3xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %r = intra.size {domain = #intra.domain<R>} : index
  %offsets = intra.offsets {domain = #intra.domain<e>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<e>, along = ["dst"], path = "src"} : memref<?xi32>
  %owner = intra.index_map {domain = #intra.domain<R>, path = "owner"} : memref<?xi32>
  %from = intra.alloc {domain = #intra.domain<R>} : memref<?x3xf32>
  %to = intra.alloc {domain = #intra.domain<H>} : memref<?x3xf32>
  %h = intra.alloc {domain = #intra.domain<N>} : memref<?x3xf32>
  %l = intra.alloc {domain = #intra.domain<N>} : memref<?x3xf32>
  intra.traverse %i in %n {
    %v = intra.load %x[%i] : vector<3xf32>
    %w = intra.apply %v {fn = "exp"} : vector<3xf32>
    intra.store %w, %h[%i]
  }
  intra.traverse %i in %r {
    %j = intra.lookup %owner[%i] : index
    %v = intra.load %x[%j] : vector<3xf32>
    intra.store %v, %from[%i]
  }
  intra.move_start %from, %to {plan = "halo"}
  intra.traverse %i in %n {
    %v = intra.load %h[%i] : vector<3xf32>
    %u = intra.apply %v {fn = "sin"} : vector<3xf32>
    intra.store %u, %l[%i]
    intra.store %v, %z[%i]
  }
  intra.move_wait %to {plan = "halo"}
  intra.traverse %i in %n {
    %v = intra.load %l[%i] : vector<3xf32>
    %s = intra.segment %p in %offsets[%i] ["sum"] {
      %j = intra.lookup %src[%p] : index
      %g = intra.load %to[%j] : vector<3xf32>
      intra.yield %g
    } : vector<3xf32>
    %u = intra.apply %v, %s {fn = "add"} : vector<3xf32>
    intra.store %u, %y[%i]
  }
  func.return
}

// -----

// The number is another one once it has been reduced over all ranks: its reader reads it again.
// CHECK-LABEL: func.func @total
// CHECK: intra.store %{{.*}}, %t
// CHECK: intra.all_reduce %t {kind = "sum"}
// CHECK-NEXT: intra.traverse
// CHECK: intra.load %t
func.func @total() attributes {intra.phase} {
  %y = intra.output {buffer = "y"} : memref<?xf32>
  %x = intra.input {buffer = "x"} : memref<?xf32>
  %one = intra.size : index
  %t = intra.alloc : memref<?xf32>
  intra.traverse %i in %one {
    %v = intra.load %x[%i] : f32
    %w = intra.apply %v, %v {fn = "add"} : f32
    intra.store %w, %t[%i]
  }
  intra.all_reduce %t {kind = "sum"}
  intra.traverse %i in %one {
    %v = intra.load %t[%i] : f32
    intra.store %v, %y[%i]
  }
  func.return
}

// -----

// No nest reads what is sent, and yet it is computed.
// CHECK-LABEL: func.func @sent
// CHECK: intra.traverse
// CHECK: intra.store %{{.*}}, %from
// CHECK: intra.move_start %from, %to {plan = "halo"}
// CHECK: intra.move_wait %to {plan = "halo"}
func.func @sent() attributes {intra.phase} {
  %to = intra.output {buffer = "halo", domain = #intra.domain<H>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<R>} : memref<?xf32>
  %r = intra.size {domain = #intra.domain<R>} : index
  %from = intra.alloc {domain = #intra.domain<R>} : memref<?xf32>
  intra.traverse %i in %r {
    %v = intra.load %x[%i] : f32
    intra.store %v, %from[%i]
  }
  intra.move_start %from, %to {plan = "halo"}
  intra.move_wait %to {plan = "halo"}
  func.return
}

// -----

// What is cheap for an edge is computed again behind the wait, and stored for neither sum.
// CHECK-LABEL: func.func @again
// CHECK: intra.move_start %from, %to {plan = "halo"}
// CHECK-NEXT: intra.traverse
// CHECK: {fn = "leaky_relu", params = {slope = 2.000000e-01 : f64}}
// CHECK: intra.store %{{.*}}, %l
// CHECK: intra.move_wait %to {plan = "halo"}
// CHECK-NEXT: intra.traverse
// CHECK: {fn = "leaky_relu", params = {slope = 2.000000e-01 : f64}}
// CHECK: intra.store %{{.*}}, %y
// CHECK-NOT: intra.traverse
func.func @again() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %l = intra.output {buffer = "l", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %from = intra.input {buffer = "from", domain = #intra.domain<R>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %edges = intra.size {domain = #intra.domain<g>} : index
  %src = intra.index_map {domain = #intra.domain<g>, path = "src"} : memref<?xi32>
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %members = intra.members {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi32>
  %e = intra.alloc {domain = #intra.domain<g>} : memref<?xf32>
  %to = intra.alloc {domain = #intra.domain<N>} : memref<?xf32>
  intra.traverse %i in %edges {
    %j = intra.lookup %src[%i] : index
    %v = intra.load %x[%j] : f32
    %w = intra.apply %v {fn = "leaky_relu", params = {slope = 2.000000e-01 : f64}} : f32
    intra.store %w, %e[%i]
  }
  intra.move_start %from, %to {plan = "halo"}
  intra.traverse %i in %n {
    %v = intra.segment %p in %offsets[%i] ["max"] {
      %j = intra.lookup %members[%p] : index
      %w = intra.load %e[%j] : f32
      intra.yield %w
    } : f32
    intra.store %v, %l[%i]
  }
  intra.move_wait %to {plan = "halo"}
  intra.traverse %i in %n {
    %g = intra.load %to[%i] : f32
    %v = intra.segment %p in %offsets[%i] ["sum"] {
      %j = intra.lookup %members[%p] : index
      %w = intra.load %e[%j] : f32
      intra.yield %w
    } : f32
    %z = intra.apply %v, %g {fn = "add"} : f32
    intra.store %z, %y[%i]
  }
  func.return
}
