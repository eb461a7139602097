// RUN: deft-opt %s --pass-pipeline='builtin.module(deft.attention(deft-reciprocal))' | FileCheck %s

// The mask keeps its division: its comparisons are exact. In the score, a division by what varies with the token
// stays too: there is nothing to share.
// CHECK-LABEL: mask
// CHECK: arith.divf
// CHECK-LABEL: score
// CHECK-DAG: %[[CAP:.*]] = deft.param "cap"
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.000000e+00
// CHECK: %[[INVERSE:.*]] = arith.divf %[[ONE]], %[[CAP]]
// CHECK: %[[PRODUCT:.*]] = arith.mulf %s, %[[INVERSE]]
// CHECK: arith.divf %[[PRODUCT]], %{{.*}}
deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params [#deft.param<name = "cap", type = f32, shape = scalar>]
mask(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  %cap = deft.param "cap" : f32
  %0 = arith.sitofp %kv_pos : i32 to f32
  %1 = arith.divf %0, %cap : f32
  %2 = arith.cmpf olt, %1, %cap : f32
  deft.yield %2 : i1
}
score(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  %cap = deft.param "cap" : f32
  %0 = arith.divf %s, %cap : f32
  %1 = arith.sitofp %depth : i32 to f32
  %2 = arith.divf %0, %1 : f32
  deft.yield %2 : f32
}
