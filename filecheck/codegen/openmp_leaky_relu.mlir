// RUN: gnn-opt %s -p "schedule{vector-bytes=32},cut-stages" -t openmp | filecheck %s

// The score of an edge is the greater of two numbers: a branch would often go the other way than the
// last one. With a slope above 1 the greater one would be wrong.
// CHECK: const float [[X:s[0-9]+]] = (in_x + i * 1)[0];
// CHECK-NEXT: const float {{s[0-9]+}} = ([[X]] > (0.2f * [[X]]) ? [[X]] : (0.2f * [[X]]));
// CHECK-NEXT: const float {{s[0-9]+}} = (([[X]] > 0.0f) ? [[X]] : (2.0f * [[X]]));
func.func @forward() attributes {intra.phase} {
  %y = intra.output {buffer = "y", domain = #intra.domain<N>} : memref<?xf32>
  %z = intra.output {buffer = "z", domain = #intra.domain<N>} : memref<?xf32>
  %x = intra.input {buffer = "x", domain = #intra.domain<N>} : memref<?xf32>
  %n = intra.size {domain = #intra.domain<N>} : index
  intra.traverse %i in %n {
    %v = intra.load %x[%i] : f32
    %a = intra.apply %v {fn = "leaky_relu", params = {slope = 0.2 : f64}} : f32
    %b = intra.apply %v {fn = "leaky_relu", params = {slope = 2.0 : f64}} : f32
    intra.store %a, %y[%i]
    intra.store %b, %z[%i]
  }
  func.return
}
