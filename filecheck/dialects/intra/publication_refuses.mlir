// RUN: gnn-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: the plan 'S to H' is published: add intra.retire
func.func @f() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %far = intra.index_map {domain = #intra.domain<N>, path = "far"} : memref<?xi32>
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  %p = intra.peer_rows {plan = "S to H", domain = #intra.domain<H>} : memref<?xf32>
  intra.publish %x, %p {plan = "S to H"}
  intra.traverse %i in %n {
    %j = intra.lookup %far[%i] : index
    %v = intra.load %p[%j] : f32
    intra.store %v, %y[%i]
  }
  func.return
}

// -----

// CHECK: the plan 'S to H' is not published: nothing is to retire
func.func @f() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %far = intra.index_map {domain = #intra.domain<N>, path = "far"} : memref<?xi32>
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  %p = intra.peer_rows {plan = "S to H", domain = #intra.domain<H>} : memref<?xf32>
  intra.retire %x, %p {plan = "S to H"}
  func.return
}

// -----

// CHECK: intra.traverse reads rows of others that are not published there
func.func @f() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %far = intra.index_map {domain = #intra.domain<N>, path = "far"} : memref<?xi32>
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  %p = intra.peer_rows {plan = "S to H", domain = #intra.domain<H>} : memref<?xf32>
  intra.publish %x, %p {plan = "S to H"}
  intra.retire %x, %p {plan = "S to H"}
  intra.traverse %i in %n {
    %j = intra.lookup %far[%i] : index
    %v = intra.load %p[%j] : f32
    intra.store %v, %y[%i]
  }
  func.return
}

// -----

// CHECK: intra.traverse writes what others read: move it behind intra.retire
func.func @f() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.output {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %far = intra.index_map {domain = #intra.domain<N>, path = "far"} : memref<?xi32>
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  %p = intra.peer_rows {plan = "S to H", domain = #intra.domain<H>} : memref<?xf32>
  intra.publish %x, %p {plan = "S to H"}
  intra.traverse %i in %n {
    %j = intra.lookup %far[%i] : index
    %v = intra.load %p[%j] : f32
    intra.store %v, %x[%i]
  }
  intra.retire %x, %p {plan = "S to H"}
  func.return
}

// -----

// CHECK: the rows of others have the type of those here, memref<?x2xf32>, not memref<?xf32>
func.func @f() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?x2xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %far = intra.index_map {domain = #intra.domain<N>, path = "far"} : memref<?xi32>
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  %p = intra.peer_rows {plan = "S to H", domain = #intra.domain<H>} : memref<?xf32>
  intra.publish %x, %p {plan = "S to H"}
  intra.retire %x, %p {plan = "S to H"}
  func.return
}

// -----

// CHECK: what is published are the rows of a set: use intra.all_reduce for single rows
func.func @f() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x"} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %far = intra.index_map {domain = #intra.domain<N>, path = "far"} : memref<?xi32>
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  %p = intra.peer_rows {plan = "S to H", domain = #intra.domain<H>} : memref<?xf32>
  intra.publish %x, %p {plan = "S to H"}
  intra.retire %x, %p {plan = "S to H"}
  func.return
}

// -----

// CHECK: the rows are those of the plan 'S to H'
func.func @f() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %far = intra.index_map {domain = #intra.domain<N>, path = "far"} : memref<?xi32>
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  %p = intra.peer_rows {plan = "S to H", domain = #intra.domain<H>} : memref<?xf32>
  intra.publish %x, %p {plan = "other"}
  intra.retire %x, %p {plan = "S to H"}
  func.return
}

// -----

// CHECK: inputs and tables are only read: write to an intra.output or intra.alloc
func.func @f() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %far = intra.index_map {domain = #intra.domain<N>, path = "far"} : memref<?xi32>
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  %p = intra.peer_rows {plan = "S to H", domain = #intra.domain<H>} : memref<?xf32>
  intra.publish %x, %p {plan = "S to H"}
  intra.traverse %i in %n {
    %j = intra.lookup %far[%i] : index
    %v = intra.load %p[%j] : f32
    intra.store %v, %p[%i]
  }
  intra.retire %x, %p {plan = "S to H"}
  func.return
}

// -----

// CHECK: a row that is issued is awaited once, not 2 times
func.func @f() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %far = intra.index_map {domain = #intra.domain<N>, path = "far"} : memref<?xi32>
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  %p = intra.peer_rows {plan = "S to H", domain = #intra.domain<H>} : memref<?xf32>
  intra.publish %x, %p {plan = "S to H"}
  intra.traverse %i in %n {
    %s = intra.segment %q in %offsets[%i] ["sum"] {
      %j = intra.lookup %src[%q] : index
      %t = intra.issue %p[%j] : !intra.token<f32>
      %u = intra.await %t : f32
      %v = intra.await %t : f32
      intra.yield %v
    } : f32
    intra.store %s, %y[%i]
  }
  intra.retire %x, %p {plan = "S to H"}
  func.return
}

// -----

// CHECK: a row that is issued is awaited once, not 0 times
func.func @f() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %far = intra.index_map {domain = #intra.domain<N>, path = "far"} : memref<?xi32>
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  %p = intra.peer_rows {plan = "S to H", domain = #intra.domain<H>} : memref<?xf32>
  intra.publish %x, %p {plan = "S to H"}
  intra.traverse %i in %n {
    %s = intra.segment %q in %offsets[%i] ["sum"] {
      %j = intra.lookup %src[%q] : index
      %t = intra.issue %p[%j] : !intra.token<f32>
      %v = intra.load %p[%j] : f32
      intra.yield %v
    } : f32
    intra.store %s, %y[%i]
  }
  intra.retire %x, %p {plan = "S to H"}
  func.return
}

// -----

// CHECK: rows of other ranks are issued, those here are loaded
func.func @f() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %far = intra.index_map {domain = #intra.domain<N>, path = "far"} : memref<?xi32>
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  %p = intra.peer_rows {plan = "S to H", domain = #intra.domain<H>} : memref<?xf32>
  intra.traverse %i in %n {
    %s = intra.segment %q in %offsets[%i] ["sum"] {
      %j = intra.lookup %src[%q] : index
      %t = intra.issue %x[%j] : !intra.token<f32>
      %v = intra.await %t : f32
      intra.yield %v
    } : f32
    intra.store %s, %y[%i]
  }
  func.return
}

// -----

// CHECK: rows of other ranks are issued at the members of a group: load them elsewhere
func.func @f() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %far = intra.index_map {domain = #intra.domain<N>, path = "far"} : memref<?xi32>
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  %p = intra.peer_rows {plan = "S to H", domain = #intra.domain<H>} : memref<?xf32>
  intra.publish %x, %p {plan = "S to H"}
  intra.traverse %i in %n {
    %j = intra.lookup %far[%i] : index
    %t = intra.issue %p[%j] : !intra.token<f32>
    %v = intra.await %t : f32
    intra.store %v, %y[%i]
  }
  intra.retire %x, %p {plan = "S to H"}
  func.return
}

// -----

// CHECK: 2 to 16 rows are on their way, not 1: with one nothing is done meanwhile
func.func @f() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %far = intra.index_map {domain = #intra.domain<N>, path = "far"} : memref<?xi32>
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  %p = intra.peer_rows {plan = "S to H", domain = #intra.domain<H>} : memref<?xf32>
  intra.publish %x, %p {plan = "S to H"}
  intra.traverse %i in %n {
    %j = intra.lookup %far[%i] : index
    %v = intra.load %p[%j] : f32
    intra.store %v, %y[%i]
  } {pipeline = #intra.pipeline<local = 1, remote = 1, pairs = 1, warps = 1, depth = 1, lanes = 1>}
  intra.retire %x, %p {plan = "S to H"}
  func.return
}

// -----

// CHECK: what totals are made of is published: add intra.retire_all
func.func @f() attributes {intra.phase} {
  %y = intra.output {buffer = "y"} : memref<?xf32>
  %a = intra.alloc : memref<?xf32>
  %one = intra.size : index
  %s = intra.peer_totals %a {kind = "sum"} : memref<?xf32>
  intra.publish_all %s
  intra.traverse %i in %one {
    %v = intra.load %s[%i] : f32
    intra.store %v, %y[%i]
  }
  func.return
}

// -----

// CHECK: what totals are made of is not published: nothing is to retire
func.func @f() attributes {intra.phase} {
  %a = intra.alloc : memref<?xf32>
  %s = intra.peer_totals %a {kind = "sum"} : memref<?xf32>
  intra.retire_all %s
  func.return
}

// -----

// CHECK: what totals are made of is published: add intra.retire_all
func.func @f() attributes {intra.phase} {
  %a = intra.alloc : memref<?xf32>
  %b = intra.alloc : memref<?xf32>
  %s = intra.peer_totals %a {kind = "sum"} : memref<?xf32>
  %t = intra.peer_totals %b {kind = "sum"} : memref<?xf32>
  intra.publish_all %s, %t
  intra.retire_all %s
  func.return
}

// -----

// CHECK: what totals are made of is retired twice
func.func @f() attributes {intra.phase} {
  %a = intra.alloc : memref<?xf32>
  %s = intra.peer_totals %a {kind = "sum"} : memref<?xf32>
  intra.retire_all %s
  intra.publish_all %s
  intra.retire_all %s
  func.return
}

// -----

// CHECK: intra.traverse writes what others read: move it behind intra.retire_all
func.func @f() attributes {intra.phase} {
  %a = intra.alloc : memref<?xf32>
  %one = intra.size : index
  %s = intra.peer_totals %a {kind = "sum"} : memref<?xf32>
  intra.publish_all %s
  intra.traverse %i in %one {
    %v = intra.load %s[%i] : f32
    intra.store %v, %a[%i]
  }
  intra.retire_all %s
  func.return
}

// -----

// CHECK: intra.traverse reads rows of others that are not published there
func.func @f() attributes {intra.phase} {
  %y = intra.output {buffer = "y"} : memref<?xf32>
  %a = intra.alloc : memref<?xf32>
  %one = intra.size : index
  %s = intra.peer_totals %a {kind = "sum"} : memref<?xf32>
  intra.publish_all %s
  intra.retire_all %s
  intra.traverse %i in %one {
    %v = intra.load %s[%i] : f32
    intra.store %v, %y[%i]
  }
  func.return
}

// -----

// CHECK: a buffer is published twice: drop one
func.func @f() attributes {intra.phase} {
  %a = intra.alloc : memref<?xf32>
  %s = intra.peer_totals %a {kind = "sum"} : memref<?xf32>
  %t = intra.peer_totals %a {kind = "max"} : memref<?xf32>
  intra.publish_all %s, %t
  intra.retire_all %s, %t
  func.return
}

// -----

// CHECK: name the totals that are made
func.func @f() attributes {intra.phase} {
  intra.publish_all
  func.return
}

// -----

// CHECK: what ranks add up of each other is an intra.peer_totals
func.func @f() attributes {intra.phase} {
  %a = intra.alloc : memref<?xf32>
  intra.publish_all %a
  intra.retire_all %a
  func.return
}

// -----

// CHECK: totals have the type of what is added up, memref<?xf32>, not memref<?x2xf32>
func.func @f() attributes {intra.phase} {
  %a = intra.alloc : memref<?xf32>
  %s = intra.peer_totals %a {kind = "sum"} : memref<?x2xf32>
  func.return
}

// -----

// CHECK: kind 'mean' is none of sum, max, min, mul
func.func @f() attributes {intra.phase} {
  %a = intra.alloc : memref<?xf32>
  %s = intra.peer_totals %a {kind = "mean"} : memref<?xf32>
  func.return
}

// -----

// CHECK: truth values are not reduced: cast them to numbers first
func.func @f() attributes {intra.phase} {
  %a = intra.alloc : memref<?xi1>
  %s = intra.peer_totals %a {kind = "max"} : memref<?xi1>
  func.return
}

// -----

// CHECK: a reduction over ranks is of whole buffers
func.func @f() attributes {intra.phase} {
  %a = intra.alloc {domain = #intra.domain<N>} : memref<?xf32>
  %p = intra.part %a : memref<?xf32>
  %s = intra.peer_totals %p {kind = "max"} : memref<?xf32>
  func.return
}

// -----

// CHECK: inputs and tables are only read: write to an intra.output or intra.alloc
func.func @f() attributes {intra.phase} {
  %a = intra.alloc : memref<?xf32>
  %one = intra.size : index
  %s = intra.peer_totals %a {kind = "sum"} : memref<?xf32>
  intra.publish_all %s
  intra.traverse %i in %one {
    %v = intra.load %s[%i] : f32
    intra.store %v, %s[%i]
  }
  intra.retire_all %s
  func.return
}

// -----

// CHECK: rows of other ranks are issued, those here are loaded
func.func @f() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %a = intra.alloc {domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  %offsets = intra.offsets {domain = #intra.domain<g>, along = ["dst"]} : memref<?xi64>
  %src = intra.member_map {domain = #intra.domain<g>, along = ["dst"], path = "src"} : memref<?xi32>
  %t = intra.peer_totals %a {kind = "sum"} : memref<?xf32>
  intra.publish_all %t
  intra.traverse %i in %n {
    %s = intra.segment %q in %offsets[%i] ["sum"] {
      %j = intra.lookup %src[%q] : index
      %u = intra.issue %t[%j] : !intra.token<f32>
      %v = intra.await %u : f32
      intra.yield %v
    } : f32
    intra.store %s, %y[%i]
  }
  intra.retire_all %t
  func.return
}
