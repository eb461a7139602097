// RUN: deft-opt %s --split-input-file --verify-diagnostics
// What the verifiers refuse: each message states what was seen and what may be.

// expected-error@+1 {{query_heads is 8 and kv_heads is 3, the first must be a positive multiple of the second}}
deft.attention @a query_heads 8 kv_heads 3 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params []

// -----

// expected-error@+1 {{the dim of q is 36, it must be a positive multiple of 8}}
deft.attention @a query_heads 8 kv_heads 2 q vector<36xbf16> k vector<36xbf16> v vector<36xbf16> out vector<36xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params []

// -----

// expected-error@+1 {{q has dim 64 and k 80, their product is over one}}
deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<80xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params []

// -----

// expected-error@+1 {{v has dim 64 and out 80, which is a sum of it}}
deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<80xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params []

// -----

// expected-error@+1 {{v is in k's memory and of another dtype}}
deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xf16> value_in_key out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params []

// -----

// expected-error@+1 {{v is in k's memory and has dim 80, more than k's 64}}
deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<80xbf16> value_in_key out vector<80xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params []

// -----

// expected-error@+1 {{products are of fp8_e4m3, k of bf16 and v of bf16}}
deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> byte_products out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params []

// -----

// expected-error@+1 {{has byte_products beside sigmoid, `key`, `value_factor` or a selection}}
deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xf8E4M3FN> v vector<64xf8E4M3FN> byte_products out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize sigmoid params []

// -----

// expected-error@+1 {{scale must be finite}}
deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 0x7FF0000000000000 normalize softmax params []

// -----

// expected-error@+1 {{normalize(sigmoid) has no lse}}
deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16> lse
  cache <page_size = 16, order = nhd> scale 1.0 normalize sigmoid params []

// -----

// expected-error@+1 {{selects, and its mask is bound by `path`}}
deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params []
  select <budget = <64>, by = query, keep_first = 0, keep_last = 0> path

// -----

// expected-error@+1 {{parameter `cap` is declared twice}}
deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params [#deft.param<name = "cap", type = f32, shape = scalar>, #deft.param<name = "cap", type = f32, shape = scalar>]

// -----

deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params []
mask(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  // expected-error@+1 {{reads `cap`, which is not a parameter of @a}}
  %0 = deft.param "cap" : i32
  %1 = arith.cmpi slt, %kv_pos, %0 : i32
  deft.yield %1 : i1
}

// -----

deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params [#deft.param<name = "cap", type = f32, shape = scalar>]
mask(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  // expected-error@+1 {{reads parameter `cap` as 'i32', it is 'f32'}}
  %0 = deft.param "cap" : i32
  %1 = arith.cmpi slt, %kv_pos, %0 : i32
  deft.yield %1 : i1
}

// -----

deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params [#deft.param<name = "w", type = f32, shape = per_token>]
output(%x: f32, %x_half: f32, %x_pair: f32, %x_rms: f32, %dim: i32, %q_pos: i32, %head: i32, %kv_head: i32, %query: i32) {
  // expected-error@+1 {{reads parameter `w` of a token where there is none: outside of `mask`, `score` and `value_factor`}}
  %0 = deft.param_of_token "w" : f32
  deft.yield %0 : f32
}

// -----

deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params [#deft.param<name = "w", type = f32, shape = per_token>]
sink(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  // expected-error@+1 {{reads parameter `w` of a token where there is none: outside of `mask`, `score` and `value_factor`}}
  %0 = deft.param_of_token "w" : f32
  deft.yield %0 : f32
}

// -----

deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params [#deft.param<name = "w", type = f32, shape = per_token>]
score(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  // expected-error@+1 {{reads parameter `w`, an array over tokens, by an index}}
  %0 = deft.param_element "w"[%kv_pos] : f32
  deft.yield %0 : f32
}

// -----

deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params [#deft.param<name = "w", type = f32, shape = per_query>]
score(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  // expected-error@+1 {{reads parameter `w` as an array over tokens, which it is not}}
  %0 = deft.param_of_token "w" : f32
  deft.yield %0 : f32
}

// -----

deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params [#deft.param<name = "w", type = f32, shape = per_query>]
score(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  // expected-error@+1 {{must index parameter `w` by `query`}}
  %0 = deft.param_element "w"[%head] : f32
  deft.yield %0 : f32
}

// -----

deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params [#deft.param<name = "w", type = f32, shape = per_token>]
score(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  // expected-error@+1 {{reads parameter `w` as 'i32', it is 'f32'}}
  %0 = deft.param_of_token "w" : i32
  %1 = arith.sitofp %0 : i32 to f32
  deft.yield %1 : f32
}

// -----

deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params [#deft.param<name = "w", type = i32, shape = per_query_head>]
mask(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  // expected-error@+1 {{reads parameter `w` as a scalar, it is an array}}
  %0 = deft.param "w" : i32
  %1 = arith.cmpi slt, %kv_pos, %0 : i32
  deft.yield %1 : i1
}

// -----

deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params [#deft.param<name = "cap", type = f32, shape = scalar>]
score(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  // expected-error@+1 {{reads parameter `cap` as an array, it is a scalar}}
  %0 = deft.param_element "cap"[%head] : f32
  deft.yield %0 : f32
}

// -----

deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params [#deft.param<name = "w", type = i32, shape = per_query_head>]
mask(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  // expected-error@+1 {{must index parameter `w` by `head`}}
  %0 = deft.param_element "w"[%kv_head] : i32
  %1 = arith.cmpi slt, %kv_pos, %0 : i32
  deft.yield %1 : i1
}

// -----

deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params []
mask(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  %c = arith.constant 0.0 : f32
  // expected-error@+1 {{reads `s` in region `mask`, which decides before scores are known}}
  %0 = arith.cmpf olt, %s, %c : f32
  deft.yield %0 : i1
}

// -----

deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params []
mask(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  // expected-error@+1 {{must end region `mask` by yielding ('i1')}}
  deft.yield %s : f32
}

// -----

// expected-error@+1 {{region `mask` has 1 arguments, it must have 7}}
deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params []
mask(%s: f32) {
  %0 = arith.constant true
  deft.yield %0 : i1
}

// -----

// expected-error@+1 {{argument 0 of region `mask` is 'i32', it must be f32}}
deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params []
mask(%s: i32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  %0 = arith.constant true
  deft.yield %0 : i1
}

// -----

deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params []
sink(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  // expected-error@+1 {{reads `q_pos` in region `sink`, which is the same for all rows of a head}}
  %0 = arith.sitofp %q_pos : i32 to f32
  deft.yield %0 : f32
}

// -----

// expected-error@+1 {{normalize(sigmoid) has no sink}}
deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize sigmoid params []
sink(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  %0 = arith.constant 1.0 : f32
  deft.yield %0 : f32
}

// -----

deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params []
output(%x: f32, %x_half: f32, %x_pair: f32, %x_rms: f32, %dim: i32, %q_pos: i32, %head: i32, %kv_head: i32, %query: i32) {
  // expected-error@+1 {{reads `x_pair` in region `output`, which has one element of a row at a time}}
  %0 = arith.addf %x, %x_pair : f32
  deft.yield %0 : f32
}

// -----

// expected-error@+1 {{region `query` has 7 arguments, it must have 9}}
deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params []
query(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  deft.yield %s : f32
}

// -----

deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax
  params [#deft.param<name = "p", type = f32, shape = per_query_head>]
query(%x: f32, %x_half: f32, %x_pair: f32, %x_rms: f32, %dim: i32, %q_pos: i32, %head: i32, %kv_head: i32, %query: i32) {
  // expected-error@+1 {{must index parameter `p` by `head`}}
  %0 = deft.param_element "p"[%dim] : f32
  deft.yield %0 : f32
}

// -----

// expected-error@+1 {{region `key` has 9 arguments, it must have 7}}
deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params []
key(%x: f32, %x_half: f32, %x_pair: f32, %x_rms: f32, %dim: i32, %q_pos: i32, %head: i32, %kv_head: i32, %query: i32) {
  deft.yield %x : f32
}

// -----

deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax
  params [#deft.param<name = "p", type = f32, shape = per_query_head>]
key(%x: f32, %x_half: f32, %x_pair: f32, %x_rms: f32, %dim: i32, %kv_pos: i32, %kv_head: i32) {
  // expected-error@+1 {{reads parameter `p` by `head`, which the region does not have}}
  %0 = deft.param_element "p"[%kv_head] : f32
  deft.yield %0 : f32
}

// -----

deft.attention @a query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
  cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params [#deft.param<name = "w", type = f32, shape = per_query_head>]
value_factor(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
  // expected-error@+1 {{reads `head` in region `value_factor`, which is the same for all rows of a KV head}}
  %0 = deft.param_element "w"[%head] : f32
  deft.yield %0 : f32
}
