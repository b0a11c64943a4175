// RUN: gnn-opt %s -p canonicalize,cse,verify-sets --check-passes --split-input-file | filecheck %s

// A slice of a slice is one, and of a concatenation one of the operand that it lies in.
// CHECK-LABEL: func.func @parts
// CHECK-NEXT: %[[A:.*]] = inter.slice %x {dim = 0, lo = 3, hi = 8, step = 4} : !inter.rows<N, 2xf32>
// CHECK-NEXT: %[[B:.*]] = inter.slice %y {dim = 0, lo = 1, hi = 3} : !inter.rows<N, 2xf32>
// CHECK-NEXT: %[[C:.*]] = inter.concat %y, %y {dim = 0} : !inter.rows<N, 8xf32>
// CHECK-NEXT: func.return %[[A]], %[[B]], %y, %[[C]]
func.func @parts(%N : !inter.set<N>, %x : !inter.rows<N, 9xf32>, %y : !inter.rows<N, 4xf32>) -> (!inter.rows<N, 2xf32>, !inter.rows<N, 2xf32>, !inter.rows<N, 4xf32>, !inter.rows<N, 8xf32>) {
  %odd = inter.slice %x {dim = 0, lo = 1, hi = 9, step = 2} : !inter.rows<N, 4xf32>
  %a = inter.slice %odd {dim = 0, lo = 1, hi = 4, step = 2} : !inter.rows<N, 2xf32>
  %all = inter.concat %x, %y, %y {dim = 0} : !inter.rows<N, 17xf32>
  %b = inter.slice %all {dim = 0, lo = 10, hi = 12} : !inter.rows<N, 2xf32>
  %c = inter.slice %all {dim = 0, lo = 13, hi = 17} : !inter.rows<N, 4xf32>
  %d = inter.slice %all {dim = 0, lo = 9, hi = 17} : !inter.rows<N, 8xf32>
  func.return %a, %b, %c, %d : !inter.rows<N, 2xf32>, !inter.rows<N, 2xf32>, !inter.rows<N, 4xf32>, !inter.rows<N, 8xf32>
}

// -----

// Of a message that is put together for all heads, each head reads its own: what was repeated for
// them is read as it is.
// CHECK-LABEL: func.func @heads
// CHECK-NEXT: %[[A:.*]] = inter.slice %y {dim = 0, lo = 0, hi = 1} : !inter.rows<N, 1x3xf32>
// CHECK-NEXT: %[[B:.*]] = inter.reshape %[[A]] : !inter.rows<N, 3xf32>
// CHECK-NEXT: %[[C:.*]] = inter.concat %x, %[[B]] {dim = 0} : !inter.rows<N, 8xf32>
// CHECK-NEXT: %[[D:.*]] = inter.slice %y {dim = 0, lo = 1, hi = 2} : !inter.rows<N, 1x3xf32>
// CHECK-NEXT: %[[E:.*]] = inter.reshape %[[D]] : !inter.rows<N, 3xf32>
// CHECK-NEXT: %[[F:.*]] = inter.concat %x, %[[E]] {dim = 0} : !inter.rows<N, 8xf32>
// CHECK-NEXT: func.return %[[C]], %[[F]]
func.func @heads(%N : !inter.set<N>, %x : !inter.rows<N, 5xf32>, %y : !inter.rows<N, 2x3xf32>) -> (!inter.rows<N, 8xf32>, !inter.rows<N, 8xf32>) {
  %two = inter.broadcast %x : !inter.rows<N, 2x5xf32>
  %all = inter.concat %two, %y {dim = 1} : !inter.rows<N, 2x8xf32>
  %a = inter.slice %all {dim = 0, lo = 0, hi = 1} : !inter.rows<N, 1x8xf32>
  %b = inter.slice %all {dim = 0, lo = 1, hi = 2} : !inter.rows<N, 1x8xf32>
  %c = inter.reshape %a : !inter.rows<N, 8xf32>
  %d = inter.reshape %b : !inter.rows<N, 8xf32>
  func.return %c, %d : !inter.rows<N, 8xf32>, !inter.rows<N, 8xf32>
}

// -----

// A concatenation that something reads as a whole stays, and so do slices across its seams.
// CHECK-LABEL: func.func @whole
// CHECK-NEXT: %[[A:.*]] = inter.concat %x, %x {dim = 1} : !inter.rows<N, 2x6xf32>
// CHECK-NEXT: %[[B:.*]] = inter.slice %[[A]] {dim = 0, lo = 0, hi = 1} : !inter.rows<N, 1x6xf32>
// CHECK-NEXT: %[[C:.*]] = inter.slice %[[A]] {dim = 1, lo = 2, hi = 4} : !inter.rows<N, 2x2xf32>
// CHECK-NEXT: func.return %[[A]], %[[B]], %[[C]]
func.func @whole(%N : !inter.set<N>, %x : !inter.rows<N, 2x3xf32>) -> (!inter.rows<N, 2x6xf32>, !inter.rows<N, 1x6xf32>, !inter.rows<N, 2x2xf32>) {
  %all = inter.concat %x, %x {dim = 1} : !inter.rows<N, 2x6xf32>
  %a = inter.slice %all {dim = 0, lo = 0, hi = 1} : !inter.rows<N, 1x6xf32>
  %b = inter.slice %all {dim = 1, lo = 2, hi = 4} : !inter.rows<N, 2x2xf32>
  func.return %all, %a, %b : !inter.rows<N, 2x6xf32>, !inter.rows<N, 1x6xf32>, !inter.rows<N, 2x2xf32>
}
