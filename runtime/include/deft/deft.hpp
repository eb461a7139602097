#pragma once

/// Attention over trees of shared prefixes, inside a program: <deft/deft.h> for C++20, header-only, for any
/// compiler and standard library. Link deft::deft.
///
///   #include <deft/deft.hpp>
///
///   auto attention = deft::compileSpec(R"(
///     attention my_model { query_heads = 32; kv_heads = 8; head_dim = 128; kv_cache = contiguous;
///     })").value();
///   auto runtime = deft::Runtime::create().value();
///
///   deft::Tree tree;                                      // a prompt of 1,000 tokens and two branches
///   int prompt = tree.addRoot(1000, 0).value();           // its tokens lie from place 0 on in the cache,
///   int first = tree.addChild(prompt, 20, 1000).value();  // those of the branches behind it
///   int second = tree.addChild(prompt, 35, 2000).value(); // (with room to grow)
///   tree.addQuery(first).value();                         // row 0 of q and out
///   tree.addQuery(second).value();                        // row 1
///
///   auto plan = deft::Plan::make(attention, tree).value();
///   for (each layer)                                      // one plan serves them all
///     runtime.run(attention, plan, {.q = q, .k = k, .v = v}, {.out = out}).value();
///
///   tree.append(first, 1).value();                        // the next step: each branch has one token more
///   tree.append(second, 1).value();
///   plan.advance(tree).value();                           // usually in place: only leaves grew
///
/// Engines pass page tables instead of a tree: paged_batch.hpp.
///
/// `.value()` throws on an error; result.hpp shows the other way.
///
/// Threads: all threads may use an Attention and a Runtime at once. A Tree, a Plan and Params may be changed
/// by one thread, or read by many. The only global state is the log's listener (log.hpp), and whether steps
/// are captured (capture.hpp).

#include <deft/attention.hpp>
#include <deft/beam_tree.hpp>
#include <deft/capture.hpp>
#include <deft/doctor.hpp>
#include <deft/expanded.hpp>
#include <deft/followers.hpp>
#include <deft/gpu.hpp>
#include <deft/log.hpp>
#include <deft/merge_states.hpp>
#include <deft/paged_batch.hpp>
#include <deft/peers.hpp>
#include <deft/plan.hpp>
#include <deft/quantize.hpp>
#include <deft/ranks.hpp>
#include <deft/result.hpp>
#include <deft/runtime.hpp>
#include <deft/selection.hpp>
#include <deft/sequence_tree.hpp>
#include <deft/tree.hpp>
#include <deft/tune.hpp>
#include <deft/version.h>
