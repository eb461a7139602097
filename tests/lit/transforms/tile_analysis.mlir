// RUN: deft-opt %s --pass-pipeline='builtin.module(deft.attention(deft-tile-analysis),canonicalize,cse)' | FileCheck %s
// The proof is a unit test over every pair of small tiles; here is what the text looks like.

// Positions stay below 2^30, so that a window of constant size needs no wider arithmetic.
// CHECK-LABEL: @window
// CHECK: tile(
// CHECK-DAG: %[[FIRST:.*]] = arith.subi %q_lo, %c4096_i32 : i32
// CHECK-DAG: %[[LAST:.*]] = arith.subi %q_hi, %c4096_i32 : i32
// CHECK-DAG: %[[ANY:.*]] = arith.cmpi slt, %[[FIRST]], %kv_hi : i32
// CHECK-DAG: %[[ALL:.*]] = arith.cmpi slt, %[[LAST]], %kv_lo : i32
// CHECK: deft.yield %[[ANY]], %[[ALL]] : i1, i1
deft.attention @window query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params []
mask(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  %c = arith.constant 4096 : i32
  %0 = arith.subi %q_pos, %c : i32
  %1 = arith.cmpi sgt, %kv_pos, %0 : i32
  deft.yield %1 : i1
}

// A window of unknown size may wrap: its bounds are computed in i64 and given up outside i32.
// CHECK-LABEL: @window_at_run_time
// CHECK: tile(
// CHECK: arith.subi {{.*}} : i64
// CHECK: arith.cmpi sge, {{.*}}, %c-2147483648_i64
// CHECK: arith.select
deft.attention @window_at_run_time query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params [#deft.param<name = "w", type = i32, shape = scalar>]
mask(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  %w = deft.param "w" : i32
  %0 = arith.subi %q_pos, %w : i32
  %1 = arith.cmpi sgt, %kv_pos, %0 : i32
  deft.yield %1 : i1
}

// The windows of all heads of a group are read, wherever the tile's heads begin.
// CHECK-LABEL: @window_of_each_head
// CHECK: tile(
// CHECK: %[[HEAD:.*]] = arith.muli %kv_head, %c4_i32
// CHECK-COUNT-4: deft.param_element "w"
// CHECK-NOT: deft.param_element
deft.attention @window_of_each_head query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params [#deft.param<name = "w", type = i32, shape = per_query_head>]
mask(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  %w = deft.param_element "w"[%head] : i32
  %0 = arith.cmpi slt, %kv_pos, %w : i32
  deft.yield %0 : i1
}

// Of arrays over tokens and queries nothing is known: any pair may be visible, and none is for sure.
// CHECK-LABEL: @of_documents
// CHECK: tile(
// CHECK-NOT: deft.param
// CHECK: deft.yield %true, %false
deft.attention @of_documents query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params [#deft.param<name = "doc", type = i32, shape = per_token>, #deft.param<name = "own", type = i32, shape = per_query>]
mask(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  %doc = deft.param_of_token "doc" : i32
  %own = deft.param_element "own"[%query] : i32
  %0 = arith.cmpi eq, %doc, %own : i32
  deft.yield %0 : i1
}

// Without a mask there is nothing to tell.
// CHECK-LABEL: @none
// CHECK-NOT: tile(
deft.attention @none query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params []
