// RUN: deft-opt %s --canonicalize --cse | FileCheck %s

// A mask that hides nothing goes away, and with it what was derived from it.
// CHECK-LABEL: @hides_nothing
// CHECK-NOT: mask
// CHECK-NOT: tile
deft.attention @hides_nothing query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params []
mask(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  %0 = arith.cmpi eq, %kv_pos, %kv_pos : i32
  deft.yield %0 : i1
}
tile(%0: i32, %1: i32, %2: i32, %3: i32, %4: i32, %5: i32, %6: i32, %7: i32, %8: i32, %9: i32, %10: i32) {
  %any = arith.constant true
  deft.yield %any, %any : i1, i1
}

// A score that is `s` is none.
// CHECK-LABEL: @plain
// CHECK-NOT: score
deft.attention @plain query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params []
score(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  %one = arith.constant 1.0 : f32
  %0 = arith.mulf %s, %one : f32
  deft.yield %0 : f32
}

// A parameter is read once. The guard of a remainder by a constant goes away.
// CHECK-LABEL: @twice
// CHECK: mask
// CHECK-NOT: select
// CHECK: arith.remsi %kv_pos, %c8_i32
// CHECK: score
// CHECK-COUNT-1: deft.param "cap"
// CHECK-NOT: deft.param "cap"
deft.attention @twice query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params [#deft.param<name = "cap", type = f32, shape = scalar>]
mask(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %bad = arith.cmpi eq, %c8, %c0 : i32
  %safe = arith.select %bad, %c1, %c8 : i32
  %0 = arith.remsi %kv_pos, %safe : i32
  %1 = arith.cmpi eq, %0, %c0 : i32
  deft.yield %1 : i1
}
score(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  %0 = deft.param "cap" : f32
  %1 = deft.param "cap" : f32
  %2 = arith.mulf %s, %0 : f32
  %3 = arith.addf %2, %1 : f32
  deft.yield %3 : f32
}
