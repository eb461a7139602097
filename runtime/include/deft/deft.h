#pragma once

/// Attention over trees of shared prefixes, for C99 and for languages that call C: all of <deft/deft.hpp>,
/// without a type of C++. Link deft::deft of CMake, or what `pkg-config --cflags --libs deft` says.
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
/// Errors. A call that can fail gives a deft_status, and deft_error_text() describes the calling thread's
/// last failed call. A call that fails changes nothing, unless it says so. No C++ exception leaves the
/// library, and it never prints or exits.
///
/// Handles. Opaque; made by ..._make, _copy, _compile, _load or _open, given back by the ..._destroy of their
/// kind, which takes null. Everywhere else a null handle is an error that names it; a call without a status
/// then returns 0. Do not use a destroyed handle. Objects made with a handle keep what they need of it.
///
/// Structs. Each begins with its `size`, so that later versions can add fields at its end. Set it to sizeof:
/// `deft_plan_options options = {.size = sizeof options};` has all defaults. The library accepts a larger
/// struct if the fields that it does not know are 0. Elements of arrays (deft_query, deft_stretch,
/// deft_token_copy, deft_expanded_node) have none and never grow.
///
/// Memory. Arguments are the caller's and are read only during the call, unless it says otherwise. A `const`
/// pointer that a call returns belongs to the handle; any other is the caller's, to be freed by deft_free.
/// Texts are UTF-8 and end with a 0.
///
/// Truth values are 0 or 1. Numbers that count have 32 bits, those that may be large 64.
///
/// Threads. An attention, a runtime, a GPU and a deft_gpu_attention may be used by all threads at once; all
/// else by one that changes it, or by many that read. The only global state is each thread's last error, the
/// log's listener (deft_set_log), and whether steps are captured (deft_set_capture).

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
