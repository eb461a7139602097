// RUN: deft-opt %s --split-input-file --verify-diagnostics
// What the verifiers refuse: each message states what was seen and what may be.

// expected-error@+1 {{page_size is -1, it must be at least 1, or 0 for a contiguous cache}}
module attributes {deft.test = #deft.cache<page_size = -1, order = nhd>} {}

// -----

// expected-error@+1 {{a parameter needs a name}}
module attributes {deft.test = #deft.param<name = "", type = f32, shape = scalar>} {}

// -----

// expected-error@+1 {{parameter `x` is 'f16', it must be f32 or i32}}
module attributes {deft.test = #deft.param<name = "x", type = f16, shape = scalar>} {}

// -----

// expected-error@+1 {{parameter `x` is an array, only a scalar has a default}}
module attributes {deft.test = #deft.param<name = "x", type = f32, shape = per_kv_head, default_value = 1.0 : f64>} {}

// -----

// expected-error@+1 {{a tune list holds 0, its values must be positive}}
module attributes {deft.test = #deft.tune<64, 0>} {}

// -----

// expected-error@+1 {{phase `p` has rows_above -2, it must be at least -1}}
module attributes {deft.test = #deft.phase<name = "p", rows_above = -2>} {}

// -----

// expected-error@+1 {{a phase needs a name}}
module attributes {deft.test = #deft.phase<name = "", rows_above = -1>} {}

// -----

// expected-error@+1 {{phase `p` has rows_above 16, the last phase and no other has -1}}
module attributes {deft.test = #deft.schedule<phases = [#deft.phase<name = "p", rows_above = 16>]>} {}

// -----

// expected-error@+1 {{phase `q` has rows_above 32, it must be below that of the phase before it}}
module attributes {deft.test = #deft.schedule<phases = [#deft.phase<name = "p", rows_above = 16>, #deft.phase<name = "q", rows_above = 32>, #deft.phase<name = "r", rows_above = -1>]>} {}

// -----

// expected-error@+1 {{partitions must be an array of #deft.partition}}
module attributes {deft.test = #deft.schedule<partitions = [1]>} {}

// -----

// expected-error@+1 {{phases must be an array of #deft.phase}}
module attributes {deft.test = #deft.schedule<phases = [1]>} {}

// -----

// expected-error@+1 {{budget is 16, it must be at least keep_first + keep_last = 17}}
module attributes {deft.test = #deft.select<budget = <64, 16>, by = kv_head, keep_first = 9, keep_last = 8>} {}

// -----

// expected-error@+1 {{keep_first is 0 and keep_last -1, neither may be negative}}
module attributes {deft.test = #deft.select<budget = <64>, by = kv_head, keep_first = 0, keep_last = -1>} {}
