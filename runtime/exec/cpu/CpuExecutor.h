#pragma once

#include "compiler/spec/Variant.h"
#include "compiler/support/Result.h"
#include "runtime/exec/Inputs.h"
#include "runtime/exec/Selection.h"
#include "runtime/exec/cpu/CpuKernel.h"
#include "runtime/plan/Paths.h"
#include "runtime/plan/Plan.h"

#include <memory>

namespace deft::exec {

struct WorthTable;

/// Runs plans on its own threads and in its own memory. Steps of the same sizes allocate nothing. Any number
/// of host threads may run steps on one executor at once; executors share nothing. The result does not depend
/// on the number of threads: each unit of work writes its own places, and partials are merged in the plan's
/// order.
class CpuExecutor {
public:
  /// `threads` includes the thread that calls run(); 0: one thread for each core. An error if the system
  /// cannot start so many.
  static support::Result<CpuExecutor> create(int threads = 0);
  CpuExecutor(CpuExecutor &&) noexcept;
  CpuExecutor &operator=(CpuExecutor &&) noexcept;
  ~CpuExecutor();

  int threads() const;

  /// For tests: fills the memory of partials with NaN, so that a read of a partial that was not written is
  /// detected. No step may be running.
  void poison();

  /// Computes the attention of one layer over the plan's tree. Returns when the outputs are written. Fails
  /// before it writes anything if the kernel was made for another variant. `outputs.lse` may be null.
  support::Result<void> run(const CpuKernel &kernel, const spec::Variant &variant, const plan::Plan &plan,
                            const InputView &inputs, const OutputView &outputs);

  /// The same over inputs in host memory. Sizes `outputs` and first fills them with NaN, so that a row that
  /// no item writes is detected.
  support::Result<void> run(const CpuKernel &kernel, const spec::Variant &variant, const plan::Plan &plan,
                            const Inputs &inputs, Outputs &outputs);

  /// As run(), for a variant with `select`. Also writes the lists, of `budget` tokens each, to `selection`,
  /// and the plan's paths to `paths`.
  support::Result<void> runSelecting(const CpuKernel &kernel, const spec::Variant &variant,
                                     const plan::Plan &plan, const InputView &inputs,
                                     const OutputView &outputs, int budget, Selection &selection,
                                     plan::Paths &paths);

  /// Attention of one layer to the listed tokens only; `paths` are those of a plan of the tree.
  support::Result<void> runSparse(const CpuKernel &kernel, const spec::Variant &variant,
                                  const Selection &selection, const plan::Paths &paths,
                                  const InputView &inputs, const OutputView &outputs);
  /// The same for lists that the caller gives; their slots must lie in the cache (findWrongSlot).
  support::Result<void> runSparse(const CpuKernel &kernel, const spec::Variant &variant,
                                  const GivenLists &lists, const plan::Plan &plan, const InputView &inputs,
                                  const OutputView &outputs);

private:
  struct State;
  struct Scratch;
  void attendLists(Scratch &scratch, const abi::CpuKernel &kernel, const spec::Variant &variant,
                   const Selection &selection, const plan::Paths &paths, const InputView &inputs,
                   const OutputView &outputs);
  void attend(Scratch &scratch, const abi::CpuKernel &kernel, const spec::Variant &variant,
              const plan::Plan &plan, const InputView &inputs, const OutputView &outputs, WorthTable *worth);
  explicit CpuExecutor(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// One run on an executor that exists only for this call, including its threads: for tests and single
/// runs.
support::Result<void> runCpu(const CpuKernel &kernel, const spec::Variant &variant, const plan::Plan &plan,
                             const InputView &inputs, const OutputView &outputs, int threads);
support::Result<void> runCpu(const CpuKernel &kernel, const spec::Variant &variant, const plan::Plan &plan,
                             const Inputs &inputs, Outputs &outputs, int threads);

} // namespace deft::exec
