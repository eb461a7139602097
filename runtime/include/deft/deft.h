#pragma once

/// Attention over trees of shared prefixes, for C99 and for languages that call C: all of <deft/deft.hpp>,
/// without C++ types. Link deft::deft in CMake, or use `pkg-config --cflags --libs deft`.
///
///   #include <deft/deft.h>
///
///   deft_attention *attention;
///   if (deft_attention_compile("attention my_model { query_heads = 32; kv_heads = 8; head_dim = 128; }",
///   NULL,
///                              &attention) != DEFT_OK)
///     fputs(deft_error_text(), stderr);
///
/// docs/c-api.md has a complete program. Rules for all calls:
///
/// Errors. A call that can fail returns a deft_status, and deft_error_text() describes the calling thread's
/// last failed call. A call that fails changes nothing, unless it says so. No C++ exception leaves the
/// library, and it never prints or exits.
///
/// Handles. They are opaque. ..._make, _copy, _compile, _load or _open makes one; the ..._destroy of its kind
/// frees it and accepts null. Everywhere else a null handle is an error that names it; a call without a
/// status then returns 0. Do not use a destroyed handle. Objects made with a handle keep the parts that they
/// need.
///
/// Structs. Each begins with its `size`, so that later versions can add fields at its end. Set it to sizeof:
/// `deft_plan_options options = {.size = sizeof options};` has all defaults. The library accepts a larger
/// struct if the fields that it does not know are 0. Elements of arrays (deft_query, deft_stretch,
/// deft_token_copy, deft_expanded_node) have no size and never grow.
///
/// Memory. Arguments belong to the caller and are read only during the call, unless it says otherwise. A
/// `const` pointer that a call returns belongs to the handle; free any other with deft_free. Texts are UTF-8
/// and end with a 0.
///
/// Booleans are 0 or 1. Counts have 32 bits; numbers that may be large have 64.
///
/// Threads. All threads may use an attention, a runtime, a GPU and a deft_gpu_attention at once. Any other
/// object may be changed by one thread, or read by many. The only global state is each thread's last error,
/// the log's listener (deft_set_log), and whether steps are captured (deft_set_capture).

#include <deft/c/attention.h>
#include <deft/c/beam_tree.h>
#include <deft/c/capture.h>
#include <deft/c/doctor.h>
#include <deft/c/expanded.h>
#include <deft/c/followers.h>
#include <deft/c/gpu.h>
#include <deft/c/log.h>
#include <deft/c/merge_states.h>
#include <deft/c/paged_batch.h>
#include <deft/c/peers.h>
#include <deft/c/plan.h>
#include <deft/c/quantize.h>
#include <deft/c/ranks.h>
#include <deft/c/runtime.h>
#include <deft/c/selection.h>
#include <deft/c/sequence_tree.h>
#include <deft/c/status.h>
#include <deft/c/tensor.h>
#include <deft/c/tree.h>
#include <deft/c/tune.h>
#include <deft/version.h>
