// RUN: gnn-opt %s -p overlap-exchanges --split-input-file | filecheck %s

// What is sent is computed first, sums that need no message while it is under way, and what is light
// right before it is read.
// CHECK-LABEL: func.func @forward()
// CHECK: intra.traverse %{{.*}} in %r
// CHECK: intra.move_start %from, %to {plan = "halo"}
// CHECK: intra.store %{{.*}}, %near
// CHECK: intra.move_wait %to {plan = "halo"}
// CHECK: intra.store %{{.*}}, %light
// CHECK: intra.store %{{.*}}, %y
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf64>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf64>
  %n = intra.size {domain = #intra.domain<N>} : index
  %r = intra.size {domain = #intra.domain<R>} : index
  %owner = intra.index_map {domain = #intra.domain<R>, path = "owner"} : memref<?xi32>
  %far = intra.index_map {domain = #intra.domain<N>, path = "far"} : memref<?xi32>
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %source = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  %light = intra.alloc {domain = #intra.domain<N>} : memref<?xf64>
  %near = intra.alloc {domain = #intra.domain<N>} : memref<?xf64>
  %from = intra.alloc {domain = #intra.domain<R>} : memref<?xf64>
  %to = intra.alloc {domain = #intra.domain<H>} : memref<?xf64>
  intra.traverse %i in %n {
    %v = intra.load %x[%i] : f64
    %w = intra.apply %v {fn = "exp"} : f64
    intra.store %w, %light[%i]
  }
  intra.traverse %i in %n {
    %v = intra.segment %p in %offsets[%i] ["sum"] {
      %j = intra.lookup %source[%p] : index
      %w = intra.load %x[%j] : f64
      intra.yield %w
    } : f64
    intra.store %v, %near[%i]
  }
  intra.traverse %i in %r {
    %j = intra.lookup %owner[%i] : index
    %v = intra.load %x[%j] : f64
    intra.store %v, %from[%i]
  }
  intra.move_start %from, %to {plan = "halo"}
  intra.move_wait %to {plan = "halo"}
  intra.traverse %i in %n {
    %j = intra.lookup %far[%i] : index
    %v = intra.load %to[%j] : f64
    %w = intra.load %near[%i] : f64
    %u = intra.load %light[%i] : f64
    %z = intra.apply %v, %w {fn = "add"} : f64
    %a = intra.apply %z, %u {fn = "add"} : f64
    intra.store %a, %y[%i]
  }
  func.return
}

// -----

// Reductions wait for all that can be done before, and are one message then.
// CHECK-LABEL: func.func @forward()
// CHECK: intra.store %{{.*}}, %y
// CHECK: intra.all_reduce %a, %b {kind = "sum"}
// CHECK: intra.store %{{.*}}, %z
// CHECK-NOT: intra.all_reduce
func.func @forward() attributes {intra.phase} {
  %z = intra.output {buffer = "z"} : memref<?xf64>
  %a = intra.output {buffer = "a"} : memref<?xf64>
  %b = intra.output {buffer = "b"} : memref<?xf64>
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf64>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf64>
  %n = intra.size {domain = #intra.domain<N>} : index
  %one = intra.size : index
  intra.traverse %i in %n {
    %v = intra.load %x[%i] : f64
    intra.total %v, %a {kind = "sum"}
  }
  intra.all_reduce %a {kind = "sum"}
  intra.traverse %i in %one {
    %v = intra.load %a[%i] : f64
    intra.store %v, %z[%i]
  }
  intra.traverse %i in %n {
    %v = intra.load %x[%i] : f64
    %w = intra.apply %v {fn = "exp"} : f64
    intra.total %w, %b {kind = "sum"}
  }
  intra.all_reduce %b {kind = "sum"}
  intra.traverse %i in %n {
    %v = intra.load %x[%i] : f64
    intra.store %v, %y[%i]
  }
  func.return
}

// -----

// A sum of what follows from the rows that another sum reads, for the same groups, is done next to
// it, though only a later step needs it.
// CHECK-LABEL: func.func @forward()
// CHECK: intra.store %{{.*}}, %s
// CHECK: intra.store %{{.*}}, %e
// CHECK: intra.store %{{.*}}, %t
// CHECK: intra.move_start %from, %to {plan = "halo"}
// CHECK-NEXT: intra.traverse %{{.*}} in %n
// CHECK: intra.store %{{.*}}, %near
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<H>} : memref<?xf64>
  %t = intra.output {buffer = "t", domain = #intra.domain<N>} : memref<?xf64>
  %near = intra.output {buffer = "near", domain = #intra.domain<N>} : memref<?xf64>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf64>
  %n = intra.size {domain = #intra.domain<N>} : index
  %edges = intra.size {domain = #intra.domain<g>} : index
  %r = intra.size {domain = #intra.domain<R>} : index
  %h = intra.size {domain = #intra.domain<H>} : index
  %owner = intra.index_map {domain = #intra.domain<R>, path = "owner"} : memref<?xi32>
  %src = intra.index_map {domain = #intra.domain<g>, path = "src"} : memref<?xi32>
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %members = intra.members {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi32>
  %source = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  %s = intra.alloc {domain = #intra.domain<N>} : memref<?xf64>
  %e = intra.alloc {domain = #intra.domain<g>} : memref<?xf64>
  %from = intra.alloc {domain = #intra.domain<R>} : memref<?xf64>
  %to = intra.alloc {domain = #intra.domain<H>} : memref<?xf64>
  intra.traverse %i in %n {
    %v = intra.segment %p in %offsets[%i] ["sum"] {
      %j = intra.lookup %source[%p] : index
      %w = intra.load %x[%j] : f64
      intra.yield %w
    } : f64
    intra.store %v, %s[%i]
  }
  intra.traverse %i in %r {
    %j = intra.lookup %owner[%i] : index
    %v = intra.load %s[%j] : f64
    intra.store %v, %from[%i]
  }
  intra.move_start %from, %to {plan = "halo"}
  intra.move_wait %to {plan = "halo"}
  intra.traverse %i in %h {
    %v = intra.load %to[%i] : f64
    intra.store %v, %y[%i]
  }
  intra.traverse %i in %n {
    %v = intra.load %x[%i] : f64
    %w = intra.apply %v {fn = "exp"} : f64
    intra.store %w, %near[%i]
  }
  intra.traverse %i in %edges {
    %j = intra.lookup %src[%i] : index
    %v = intra.load %x[%j] : f64
    %w = intra.apply %v {fn = "exp"} : f64
    intra.store %w, %e[%i]
  }
  intra.traverse %i in %n {
    %v = intra.segment %p in %offsets[%i] ["sum"] {
      %j = intra.lookup %members[%p] : index
      %w = intra.load %e[%j] : f64
      intra.yield %w
    } : f64
    intra.store %v, %t[%i]
  }
  func.return
}

// -----

// What the second message alone needs is done while the first is under way, though it is written
// before what the first needs.
// CHECK-LABEL: func.func @forward()
// CHECK: intra.store %{{.*}}, %from
// CHECK: intra.move_start %from, %to {plan = "halo"}
// CHECK: intra.store %{{.*}}, %near
// CHECK: intra.move_wait %to {plan = "halo"}
// CHECK: intra.store %{{.*}}, %back
// CHECK: intra.move_start %back, %home {plan = "back"}
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<R>} : memref<?xf64>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf64>
  %n = intra.size {domain = #intra.domain<N>} : index
  %r = intra.size {domain = #intra.domain<R>} : index
  %h = intra.size {domain = #intra.domain<H>} : index
  %owner = intra.index_map {domain = #intra.domain<R>, path = "owner"} : memref<?xi32>
  %reader = intra.index_map {domain = #intra.domain<H>, path = "reader"} : memref<?xi32>
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %source = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  %near = intra.alloc {domain = #intra.domain<N>} : memref<?xf64>
  %from = intra.alloc {domain = #intra.domain<R>} : memref<?xf64>
  %to = intra.alloc {domain = #intra.domain<H>} : memref<?xf64>
  %back = intra.alloc {domain = #intra.domain<H>} : memref<?xf64>
  %home = intra.alloc {domain = #intra.domain<R>} : memref<?xf64>
  intra.traverse %i in %n {
    %v = intra.segment %p in %offsets[%i] ["sum"] {
      %j = intra.lookup %source[%p] : index
      %w = intra.load %x[%j] : f64
      intra.yield %w
    } : f64
    intra.store %v, %near[%i]
  }
  intra.traverse %i in %r {
    %j = intra.lookup %owner[%i] : index
    %v = intra.load %x[%j] : f64
    intra.store %v, %from[%i]
  }
  intra.move_start %from, %to {plan = "halo"}
  intra.move_wait %to {plan = "halo"}
  intra.traverse %i in %h {
    %j = intra.lookup %reader[%i] : index
    %v = intra.load %to[%i] : f64
    %w = intra.load %near[%j] : f64
    %z = intra.apply %v, %w {fn = "add"} : f64
    intra.store %z, %back[%i]
  }
  intra.move_start %back, %home {plan = "back"}
  intra.move_wait %home {plan = "back"}
  intra.traverse %i in %r {
    %v = intra.load %home[%i] : f64
    intra.store %v, %y[%i]
  }
  func.return
}
