#pragma once

#include <deft/attention.hpp>
#include <deft/plan.hpp>
#include <deft/selection.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

/// Who computes.
namespace deft {

/// What a run reads, in the host's own memory; nothing is copied, and everything must stay until run()
/// returns. 16-bit values are of the attention's dtype and need the alignment of their type only.
struct Inputs {
  const void *q = nullptr; ///< [query][query_heads][dim of q], queries in the tree's order; see qStride
  const void *k = nullptr; ///< the cache of one layer; see CacheStrides
  const void *v = nullptr;
  /// Physical page of each page of the table. Covers at least every page that holds a token of a path; those
  /// that a mask hides from all queries may be -1 (see Plan). Unused when the cache is contiguous.
  std::span<const int> pageTable = {};
  /// Where the cache is not packed as Attention::strides says: several layers side by side, K and V of a
  /// token or a page side by side.
  std::optional<CacheStrides> strides = {};
  const Params *params = nullptr; ///< null: the defaults
  /// Pages that K and V have, of a contiguous cache tokens: what the run would read beyond them is an error.
  /// None: the run believes the page table.
  std::optional<std::int64_t> cachePages = {};
  std::optional<CacheStrides> vStrides = {}; ///< V's own; none: `strides` are those of both
  /// Elements from a query to the next one in q, where the rows are wider than the heads (q, K and V of a
  /// token side by side); 0: packed.
  std::int64_t qStride = 0;
  /// For who looks for a NaN or an infinity, which need not show in a result: behind the run q, the keys and
  /// values that it read, lse and out are looked at. The first row that has one is an error, which names it
  /// and what holds it; everything is written then. Takes as long as many runs.
  bool checksFinite = false;
};

/// Where a run writes, in the host's own memory. Every element is written.
struct Outputs {
  void *out = nullptr; ///< [query][query_heads][dim of out]; see outStride
  /// [query][query_heads]: natural logarithm of the sum of the exponentials of the scores; -inf (and 0 in
  /// out) where a query sees no token. May be null; must be where the attention has none (Attention::hasLse).
  float *lse = nullptr;
  std::int64_t outStride = 0; ///< elements from a query to the next one in out; 0: packed
};

struct RuntimeOptions {
  int threads = 0; ///< at most 1,024; 0: one for each processor that this process may use
};

/// Runs plans on this machine's processors. Several runtimes in one process do not know of each other, and
/// several threads may call run() of one at once.
///
/// GPUs have structures of their own, for memory of the device and a stream: <deft/gpu.hpp>.
class DEFT_API Runtime {
public:
  static Result<Runtime> create(const RuntimeOptions &options = {});

  Runtime(Runtime &&) noexcept;
  Runtime &operator=(Runtime &&) noexcept;
  ~Runtime();

  int threads() const;

  /// Computes the attention of all queries of the plan's tree and returns when it is done. An error (a
  /// missing buffer, a stale plan, a parameter without a value) is found before anything is written, but for
  /// what Inputs::checksFinite asks. The result does not depend on the number of threads.
  Result<void> run(const Attention &attention, const Plan &plan, const Inputs &inputs,
                   const Outputs &outputs) const;

  /// As run(), of an attention whose spec says `select`; `selection` then has the lists, which other layers
  /// over the same tree read by runSparse().
  Result<void> runSelecting(const Attention &attention, const Plan &plan, Selection &selection,
                            const Inputs &inputs, const Outputs &outputs) const;

  /// The attention of all queries to the tokens of their lists alone, which may be another layer's. The tree
  /// is as it was in the run that selected.
  Result<void> runSparse(const Attention &attention, const Plan &plan, const Selection &selection,
                         const Inputs &inputs, const Outputs &outputs) const;

  struct Impl;

private:
  explicit Runtime(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace deft
