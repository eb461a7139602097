// RUN: deft-opt %s --pass-pipeline='builtin.module(deft.attention(deft-defaults))' | FileCheck %s

// CHECK-LABEL: @none
// CHECK: schedule <partitions = [#deft.partition<auto>], chunk = <128, 256, 512, 1024>, phases = [
// CHECK-SAME: #deft.phase<name = "wide", rows_above = 16, tile_q = <64, 128>, tile_kv = <64, 128>, stages = <2, 3>, warps = <4>>,
// CHECK-SAME: #deft.phase<name = "narrow", rows_above = -1, tile_q = <16>, tile_kv = <32, 64, 128>, stages = <2, 3, 4>, warps = <4>>]>
deft.attention @none query_heads 8 kv_heads 2 head_dim 64 dtype bf16 output bf16
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params []

// A tile holds one query, which is 71 rows; keys of 256 elements leave room for fewer tokens.
// CHECK-LABEL: @large
// CHECK: name = "wide", rows_above = 16, tile_q = <80, 128>, tile_kv = <32, 64>, stages = <2, 3>
// CHECK-SAME: name = "narrow", rows_above = -1, tile_q = <80>, tile_kv = <32, 64>
deft.attention @large query_heads 71 kv_heads 1 head_dim 256 dtype bf16 output bf16
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params []

// What is given stays.
// CHECK-LABEL: @given
// CHECK: schedule <partitions = [#deft.partition<node>], chunk = <64>, phases = [
// CHECK-SAME: #deft.phase<name = "only", rows_above = -1, tile_q = <32>, tile_kv = <32, 64, 128>, stages = <2, 3, 4>, warps = <4>>]>
deft.attention @given query_heads 8 kv_heads 2 head_dim 64 dtype bf16 output bf16
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params [] schedule <partitions = [#deft.partition<node>], chunk = <64>, phases = [#deft.phase<name = "only", rows_above = -1, tile_q = <32>>]>
