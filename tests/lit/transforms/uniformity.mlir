// RUN: deft-opt %s --pass-pipeline='builtin.module(deft.attention(deft-annotate-uniformity))' | FileCheck %s
// What an operation depends on is the join of what its operands depend on.

// CHECK-LABEL: score
deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params [#deft.param<name = "cap", type = f32, shape = scalar>, #deft.param<name = "slope", type = f32, shape = per_query_head>, #deft.param<name = "doc", type = i32, shape = per_token>, #deft.param<name = "own", type = i32, shape = per_query>]
score(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  // CHECK: deft.param "cap" {deft.uniformity = "launch"}
  %cap = deft.param "cap" : f32
  // CHECK: deft.param_element "slope"[%head] {deft.uniformity = "row"}
  %slope = deft.param_element "slope"[%head] : f32
  // CHECK: deft.param_of_token "doc" {deft.uniformity = "column"}
  %doc = deft.param_of_token "doc" : i32
  // CHECK: deft.param_element "own"[%query] {deft.uniformity = "row"}
  %own = deft.param_element "own"[%query] : i32
  // CHECK: addi %q_pos, %query {deft.uniformity = "row"}
  %row = arith.addi %q_pos, %query : i32
  // CHECK: addi %kv_pos, %depth {deft.uniformity = "column"}
  %column = arith.addi %kv_pos, %depth : i32
  // CHECK: addi %kv_head, %kv_head {deft.uniformity = "launch"}
  %launch = arith.addi %kv_head, %kv_head : i32
  // CHECK: addi %{{.*}}, %{{.*}} {deft.uniformity = "column"}
  %also_column = arith.addi %column, %launch : i32
  // CHECK: subi %{{.*}}, %{{.*}} {deft.uniformity = "pair"}
  %pair = arith.subi %also_column, %row : i32
  %0 = arith.sitofp %pair : i32 to f32
  %1 = arith.mulf %0, %slope : f32
  // CHECK: addf %s, %{{.*}} {deft.uniformity = "pair"}
  %2 = arith.addf %s, %cap : f32
  %3 = arith.addf %1, %2 : f32
  deft.yield %3 : f32
}
