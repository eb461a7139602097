#pragma once

#include <deft/c/runtime.h>
#include <deft/plan.hpp>
#include <deft/run_tensors.hpp>
#include <deft/selection.hpp>

/// The threads that compute on this machine's processors.
namespace deft {

/// The inputs of a run, in host memory. Nothing is copied, and everything must stay until run() returns.
/// 16-bit values have the attention's dtype and need only the alignment of their type.
struct Inputs {
  const void *q = nullptr; ///< [query][query_heads][dim of q], queries in the tree's order; see qStride
  const void *k = nullptr; ///< the cache of one layer; see CacheStrides
  const void *v = nullptr;
  /// The physical page of each page of the table. It covers at least every page that holds a token of a path.
  /// Pages that a mask hides from all queries may be -1 (see Plan). Unused if the cache is contiguous.
  std::span<const int> pageTable = {};
  /// For a cache that is not packed like Attention::strides: several layers may lie side by side, or K and V
  /// of a token or a page.
  std::optional<CacheStrides> strides = {};
  const Params *params = nullptr; ///< null: the defaults
  /// Pages of K and V, or tokens of a contiguous cache: a read beyond them is an error. None: the page table
  /// is not checked.
  std::optional<std::int64_t> cachePages = {};
  std::optional<CacheStrides> vStrides = {}; ///< V's own; none: `strides` are those of both
  /// Elements between consecutive queries in q, if rows are wider than the heads (as in a fused projection of
  /// q, K and V); 0: packed.
  std::int64_t qStride = 0;
  RunSettings settings = {}; ///< all zero: the defaults
  /// For runSparse() without a selection: deft_inputs::lists, [query][budget].
  const int *lists = nullptr;
  int budget = 0; ///< entries of a list
};

/// The outputs of a run, in host memory. Every element is written.
struct Outputs {
  void *out = nullptr; ///< [query][query_heads][dim of out]; see outStride
  /// [query][query_heads]: natural logarithm of the sum of the exponentials of the scores; -inf (and 0 in
  /// out) if a query sees no token. Null: not written. Must be null without Attention::hasLse.
  float *lse = nullptr;
  std::int64_t outStride = 0; ///< elements between consecutive queries in out; 0: packed
};

struct RuntimeOptions {
  int threads = 0; ///< at most 1,024; 0: one for each processor that this process may use
};

/// Runs plans on this machine's processors. Runtimes of one process are independent, and several threads may
/// call run() of one at once.
///
/// For GPUs see <deft/gpu.hpp>.
class Runtime {
public:
  static Result<Runtime> create(const RuntimeOptions &options = {}) {
    deft_runtime_options own{};
    own.size = sizeof own;
    own.threads = options.threads;
    return detail::made<Runtime, deft_runtime>([&](auto to) { return deft_runtime_make(&own, to); });
  }
  /// Takes a handle of <deft/deft.h>.
  explicit Runtime(deft_runtime *handle) : handle_(handle) {}

  int threads() const { return deft_runtime_threads(handle()); }

  /// Computes the attention of all queries of the plan's tree and returns when it is done. Errors (a missing
  /// buffer, a stale plan, a parameter without a value) are found before anything is written, except those of
  /// deft_run_settings::check_finite. The result does not depend on the number of threads.
  Result<void> run(const Attention &attention, const Plan &plan, const Inputs &inputs,
                   const Outputs &outputs) const {
    const detail::RunTensors tensors(attention, plan.queryCount(), memoryOf(inputs, outputs));
    return detail::done(
        deft_runtime_run(handle(), attention.handle(), plan.handle(), tensors.inputs(), tensors.outputs()));
  }

  /// Like run(), for an attention whose spec says `select`. Fills the lists of `selection`, which other
  /// layers over the same tree read with runSparse().
  Result<void> runSelecting(const Attention &attention, const Plan &plan, Selection &selection,
                            const Inputs &inputs, const Outputs &outputs) const {
    const detail::RunTensors tensors(attention, plan.queryCount(), memoryOf(inputs, outputs));
    return detail::done(deft_runtime_run_selecting(handle(), attention.handle(), plan.handle(),
                                                   selection.handle(), tensors.inputs(), tensors.outputs()));
  }

  /// Computes the attention of all queries only to the tokens of their lists. The lists may come from another
  /// layer. The tree must not have changed since the selecting run.
  Result<void> runSparse(const Attention &attention, const Plan &plan, const Selection &selection,
                         const Inputs &inputs, const Outputs &outputs) const {
    const detail::RunTensors tensors(attention, plan.queryCount(), memoryOf(inputs, outputs));
    return detail::done(deft_runtime_run_sparse(handle(), attention.handle(), plan.handle(),
                                                selection.handle(), tensors.inputs(), tensors.outputs()));
  }

  /// The same for an attention whose spec says `by = caller`: the lists are Inputs::lists.
  Result<void> runSparse(const Attention &attention, const Plan &plan, const Inputs &inputs,
                         const Outputs &outputs) const {
    const detail::RunTensors tensors(attention, plan.queryCount(), memoryOf(inputs, outputs));
    return detail::done(deft_runtime_run_sparse(handle(), attention.handle(), plan.handle(), nullptr,
                                                tensors.inputs(), tensors.outputs()));
  }

  const deft_runtime *handle() const { return handle_.get(); } ///< for <deft/deft.h>

private:
  static detail::RunMemory memoryOf(const Inputs &inputs, const Outputs &outputs) {
    detail::RunMemory memory;
    memory.q = inputs.q, memory.k = inputs.k, memory.v = inputs.v;
    if (!inputs.pageTable.empty())
      memory.pageTable = inputs.pageTable.data();
    memory.tableEntries = static_cast<std::int64_t>(inputs.pageTable.size());
    memory.cachePages = inputs.cachePages;
    memory.strides = inputs.strides, memory.vStrides = inputs.vStrides;
    memory.qStride = inputs.qStride, memory.outStride = outputs.outStride;
    memory.settings = inputs.settings;
    memory.lists = inputs.lists, memory.budget = inputs.budget;
    memory.params = inputs.params;
    memory.out = outputs.out, memory.lse = outputs.lse;
    return memory;
  }

  detail::Owned<deft_runtime, deft_runtime_destroy> handle_;
};

} // namespace deft
