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

/// Runs plans on threads and in memory of its own. Steps of the same sizes allocate nothing. Any number of
/// host threads may run steps on one executor at the same time; executors share nothing. The result does not
/// depend on the number of threads: each unit of work writes places of its own, and partials are merged in
/// the plan's order.
class CpuExecutor {
public:
  /// `threads` counts the thread that calls run(); 0: one for each core. An error where the system has no
  /// more threads.
  static support::Result<CpuExecutor> create(int threads = 0);
  CpuExecutor(CpuExecutor &&) noexcept;
  CpuExecutor &operator=(CpuExecutor &&) noexcept;
  ~CpuExecutor();

  int threads() const;

  /// For tests: fills the memory of partials with NaN, so that what is read there without having been written
  /// is seen. No step may be under way.
  void poison();

  /// Attention of one layer over the plan's tree. Returns when the outputs are written. Fails, before
  /// anything is written, where the kernel was made for another variant. `outputs.lse` may be null.
  support::Result<void> run(const CpuKernel &kernel, const spec::Variant &variant, const plan::Plan &plan,
                            const InputView &inputs, const OutputView &outputs);

  /// Attention over inputs that are held here. Sizes `outputs` and fills them with NaN before, so that a row
  /// nobody writes is seen.
  support::Result<void> run(const CpuKernel &kernel, const spec::Variant &variant, const plan::Plan &plan,
                            const Inputs &inputs, Outputs &outputs);

  /// As run(), of a variant with `select`; `selection`, of as many tokens a list as `budget` says, gets the
  /// lists, and `paths` the plan's.
  support::Result<void> runSelecting(const CpuKernel &kernel, const spec::Variant &variant,
                                     const plan::Plan &plan, const InputView &inputs,
                                     const OutputView &outputs, int budget, Selection &selection,
                                     plan::Paths &paths);

  /// Attention of one layer to the tokens of lists alone; `paths` are those of a plan of the tree.
  support::Result<void> runSparse(const CpuKernel &kernel, const spec::Variant &variant,
                                  const Selection &selection, const plan::Paths &paths,
                                  const InputView &inputs, const OutputView &outputs);
  /// The same of lists that a caller hands over, whose slots the cache has (findWrongSlot).
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

/// One run on an executor made for it: for tests and single runs, since its threads start and end with the
/// call.
support::Result<void> runCpu(const CpuKernel &kernel, const spec::Variant &variant, const plan::Plan &plan,
                             const InputView &inputs, const OutputView &outputs, int threads);
support::Result<void> runCpu(const CpuKernel &kernel, const spec::Variant &variant, const plan::Plan &plan,
                             const Inputs &inputs, Outputs &outputs, int threads);

} // namespace deft::exec
