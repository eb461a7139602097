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
/// docs/c-api.md has a whole program. What holds for all calls:
///
/// Errors. A call that can fail gives a deft_status, and deft_error_text() says in words what the calling
/// thread's last failed call found. A call that fails changes nothing, unless it says so. No C++ exception
/// leaves the library, and it prints and exits for no reason of its own.
///
/// Handles. Opaque; made by ..._make, _copy, _compile, _load or _open, given back by the ..._destroy of their
/// kind, which takes null. A null handle is an error that names it everywhere else; a call that gives no
/// status then gives 0. A handle that was destroyed must not be used. What was made with a handle keeps what
/// it needs of it.
///
/// Structs. Each begins with its `size`, which says how much of it its writer knows, so that fields can be
/// added at its end. Callers write sizeof: `deft_plan_options options = {.size = sizeof options};` has all
/// defaults. A struct that is larger than the library's is taken as long as what the library does not know is
/// 0. Elements of arrays (deft_query, deft_stretch, deft_token_copy) have none and never grow.
///
/// Memory. What a call takes is the caller's and is read during the call only, unless it says otherwise. A
/// `const` pointer that a call gives belongs to the handle that was asked; any other is the caller's, who
/// gives it back by deft_free. Texts are UTF-8 and end with a 0.
///
/// Truth values are 0 or 1. Numbers that count have 32 bits, those that may be large 64.
///
/// Threads. An attention, a runtime, a GPU and a deft_gpu_attention may be used by all threads at once; all
/// else by one that changes it, or by many that read. There is no global state but each thread's last error,
/// who is told what happens (deft_set_log), and whether steps are captured (deft_set_capture).

#include <deft/c/attention.h>
#include <deft/c/beam_tree.h>
#include <deft/c/capture.h>
#include <deft/c/doctor.h>
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
