// RUN: deft-opt %s | deft-opt | FileCheck %s
// The text form keeps everything that an attention can hold.

// CHECK-LABEL: deft.attention @everything query_heads 32 kv_heads 8 q vector<128xbf16> k vector<128xbf16> v vector<128xbf16> out vector<128xf16> lse
// CHECK-SAME: cache <page_size = 16, order = hnd> scale 1.250000e-01 normalize softmax
// CHECK-NEXT: params [#deft.param<name = "cap", type = f32, shape = scalar, default_value = 3.000000e+01 : f64>, #deft.param<name = "slope", type = f32, shape = per_query_head>, #deft.param<name = "sinks", type = i32, shape = per_kv_head>, #deft.param<name = "levels", type = f32, shape = per_kv_head>]
// CHECK-NEXT: schedule <partitions = [#deft.partition<union>, #deft.partition<node_chunk>], chunk = <128, 256>, phases = [#deft.phase<name = "wide", rows_above = 16, tile_q = <64>>, #deft.phase<name = "narrow", rows_above = -1>]>
// CHECK-NEXT: select <budget = <64, 256>, by = query, keep_first = 4, keep_last = 8>
deft.attention @everything query_heads 32 kv_heads 8 q vector<128xbf16> k vector<128xbf16> v vector<128xbf16> out vector<128xf16> lse
  cache <page_size = 16, order = hnd> scale 0.125 normalize softmax
  params [#deft.param<name = "cap", type = f32, shape = scalar, default_value = 30.0 : f64>,
          #deft.param<name = "slope", type = f32, shape = per_query_head>,
          #deft.param<name = "sinks", type = i32, shape = per_kv_head>,
          #deft.param<name = "levels", type = f32, shape = per_kv_head>]
  schedule <partitions = [#deft.partition<union>, #deft.partition<node_chunk>], chunk = <128, 256>,
            phases = [#deft.phase<name = "wide", rows_above = 16, tile_q = <64>>,
                      #deft.phase<name = "narrow", rows_above = -1>]>
  select <budget = <64, 256>, by = query, keep_first = 4, keep_last = 8>
// CHECK-NEXT: query(%x: f32, %x_half: f32, %x_pair: f32, %x_rms: f32, %dim: i32, %q_pos: i32, %head: i32, %kv_head: i32, %query: i32) {
query(%a: f32, %b: f32, %c: f32, %d: f32, %e: i32, %f: i32, %g: i32, %h: i32, %i: i32) {
  // CHECK-NEXT: deft.param_element "slope"[%head] : f32
  // CHECK-NEXT: arith.addf %x_half, %{{.*}} : f32
  %0 = deft.param_element "slope"[%g] : f32
  %1 = arith.addf %b, %0 : f32
  deft.yield %1 : f32
}
// CHECK: key(%x: f32, %x_half: f32, %x_pair: f32, %x_rms: f32, %dim: i32, %kv_pos: i32, %kv_head: i32) {
key(%a: f32, %b: f32, %c: f32, %d: f32, %e: i32, %f: i32, %g: i32) {
  // CHECK-NEXT: deft.param_element "levels"[%kv_head] : f32
  %0 = deft.param_element "levels"[%g] : f32
  %1 = arith.addf %c, %0 : f32
  deft.yield %1 : f32
}
// CHECK: mask(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
mask(%a: f32, %b: i32, %c: i32, %d: i32, %e: i32, %f: i32, %g: i32) {
  // CHECK-NEXT: %[[SINKS:.*]] = deft.param_element "sinks"[%kv_head] : i32
  // CHECK-NEXT: arith.cmpi slt, %kv_pos, %[[SINKS]] : i32
  %0 = deft.param_element "sinks"[%e] : i32
  %1 = arith.cmpi slt, %c, %0 : i32
  deft.yield %1 : i1
}
// CHECK: score(%s: f32,
score(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  // CHECK-NEXT: deft.param "cap" : f32
  // CHECK-NEXT: deft.param_element "slope"[%head] : f32
  %0 = deft.param "cap" : f32
  %1 = deft.param_element "slope"[%head] : f32
  %2 = arith.addf %0, %1 : f32
  deft.yield %2 : f32
}
// CHECK: sink(%s: f32,
sink(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  // CHECK-NEXT: deft.param_element "slope"[%head] : f32
  %0 = deft.param_element "slope"[%head] : f32
  deft.yield %0 : f32
}
// CHECK: output(%x: f32,
output(%x: f32, %x_half: f32, %x_pair: f32, %x_rms: f32, %dim: i32, %q_pos: i32, %head: i32, %kv_head: i32, %query: i32) {
  // CHECK-NEXT: arith.addf %x, %x : f32
  %0 = arith.addf %x, %x : f32
  deft.yield %0 : f32
}
// CHECK: tile(%q_lo: i32, %q_hi: i32, %kv_lo: i32, %kv_hi: i32, %depth_lo: i32, %depth_hi: i32, %query_lo: i32, %query_hi: i32, %head_lo: i32, %head_hi: i32, %kv_head: i32) {
tile(%0: i32, %1: i32, %2: i32, %3: i32, %4: i32, %5: i32, %6: i32, %7: i32, %8: i32, %9: i32, %10: i32) {
  %any = arith.constant true
  %all = arith.constant false
  deft.yield %any, %all : i1, i1
}

// CHECK-LABEL: deft.attention @least
// CHECK-SAME: cache <page_size = 0, order = nhd>
// CHECK-SAME: normalize sigmoid
// CHECK-NEXT: params []
// CHECK-NOT: mask
deft.attention @least query_heads 8 kv_heads 8 q vector<64xf16> k vector<64xf16> v vector<64xf16> out vector<64xf16>
  cache <page_size = 0, order = nhd> scale 1.0 normalize sigmoid params []

// CHECK-LABEL: deft.attention @values_in_keys query_heads 16 kv_heads 1 q vector<576xbf16> k vector<576xbf16> v vector<512xbf16> value_in_key out vector<512xbf16>
deft.attention @values_in_keys query_heads 16 kv_heads 1 q vector<576xbf16> k vector<576xbf16> v vector<512xbf16> value_in_key out vector<512xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params []

// CHECK-LABEL: deft.attention @products_of_bytes query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xf8E4M3FN> v vector<64xf8E4M3FN> byte_products out vector<64xbf16>
deft.attention @products_of_bytes query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xf8E4M3FN> v vector<64xf8E4M3FN> byte_products out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params []

// CHECK-LABEL: deft.attention @to_the_end_of_the_node
// CHECK: params []
// CHECK-NEXT: path
deft.attention @to_the_end_of_the_node query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params [] path

// CHECK-LABEL: deft.attention @of_tokens
// CHECK: params [#deft.param<name = "doc", type = i32, shape = per_token>, #deft.param<name = "own", type = i32, shape = per_query>]
deft.attention @of_tokens query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax
  params [#deft.param<name = "doc", type = i32, shape = per_token>, #deft.param<name = "own", type = i32, shape = per_query>]
mask(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  // CHECK: deft.param_of_token "doc" : i32
  // CHECK-NEXT: deft.param_element "own"[%query] : i32
  %0 = deft.param_of_token "doc" : i32
  %1 = deft.param_element "own"[%query] : i32
  %2 = arith.cmpi eq, %0, %1 : i32
  deft.yield %2 : i1
}

// CHECK-LABEL: deft.attention @of_rows
// CHECK: params [#deft.param<name = "vs", type = f32, shape = per_token_and_head>]
// CHECK-NEXT: value_factor(
deft.attention @of_rows query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params [#deft.param<name = "vs", type = f32, shape = per_token_and_head>]
value_factor(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  // CHECK: deft.param_of_token "vs" : f32
  %0 = deft.param_of_token "vs" : f32
  deft.yield %0 : f32
}
