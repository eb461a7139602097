#include "runtime/exec/cpu/CpuExecutor.h"

#include "runtime/exec/cpu/UnitRunner.h"

#include <algorithm>
#include <limits>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace deft::exec {

using support::Error;
using support::ErrorCode;

namespace {

/// A kernel and a variant of different make would read and write out of bounds: every fact is compared.
support::Result<void> checkKernel(const abi::CpuKernel &kernel, const spec::Variant &variant) {
  const struct {
    const char *what;
    int kernel, variant;
  } facts[] = {
      {"version", kernel.version, abi::kCpuKernelVersion},
      {"table size", kernel.tableBytes, static_cast<int>(sizeof(abi::CpuKernel))},
      {"query_heads", kernel.queryHeads, variant.queryHeads},
      {"kv_heads", kernel.kvHeads, variant.kvHeads},
      {"head_dim", kernel.headDim, variant.headDim},
      {"dtype", kernel.dtype, static_cast<int>(variant.dtype)},
      {"output dtype", kernel.outputDtype, static_cast<int>(variant.outputDtype)},
      {"normalize", kernel.sigmoid, variant.normalize == spec::Normalize::Sigmoid ? 1 : 0},
      {"number of parameters", kernel.paramCount, static_cast<int>(variant.params.size())},
  };
  for (const auto &fact : facts)
    if (fact.kernel != fact.variant)
      return Error{ErrorCode::Internal,
                   "the CPU kernel is not one of `" + variant.name + "`: its " + fact.what + " is " +
                       std::to_string(fact.kernel) + ", not " + std::to_string(fact.variant),
                   ""};
  return {};
}

int threadNumber() {
#ifdef _OPENMP
  return omp_get_thread_num();
#else
  return 0;
#endif
}

} // namespace

support::Result<void> runCpu(const CpuKernel &kernel, const spec::Variant &variant, const plan::Plan &plan,
                             const Inputs &inputs, Outputs &outputs, int threads) {
  const auto rows =
      static_cast<std::size_t>(inputs.queryCount) * static_cast<std::size_t>(variant.queryHeads);
  outputs.out.assign(rows * static_cast<std::size_t>(variant.headDim), 0xffff); // NaN in both dtypes
  outputs.lse.clear();
  if (variant.withLse)
    outputs.lse.assign(rows, std::numeric_limits<float>::quiet_NaN());
  const std::vector<abi::ParamSlot> params = inputs.paramSlots(variant);
  return runCpu(kernel, variant, plan, InputView::of(inputs, variant, params),
                OutputView{outputs.out.data(), variant.withLse ? outputs.lse.data() : nullptr}, threads);
}

support::Result<void> runCpu(const CpuKernel &kernel, const spec::Variant &variant, const plan::Plan &plan,
                             const InputView &inputs, const OutputView &outputs, int threads) {
  if (!kernel)
    return Error{ErrorCode::Internal, "no CPU kernel of `" + variant.name + "` is loaded", ""};
  if (auto checked = checkKernel(*kernel, variant); !checked)
    return checked;

  const auto headDim = static_cast<std::size_t>(variant.headDim);
  const auto partialRows =
      static_cast<std::size_t>(plan.partialSlots) * static_cast<std::size_t>(variant.queryHeads);
  std::vector<float> partialOut(partialRows * headDim), partialLse(partialRows);

  const Step step{*kernel, variant, plan, inputs, outputs, partialOut.data(), partialLse.data()};
  // Made before the threads start: nothing inside the parallel region allocates, so nothing there can throw.
  const int team = std::max(threads, 1);
  std::vector<UnitRunner> runners;
  runners.reserve(static_cast<std::size_t>(team));
  for (int i = 0; i < team; ++i)
    runners.emplace_back(step);
  const int units = static_cast<int>(plan.items.size()) * variant.kvHeads;
  const int merges = static_cast<int>(plan.mergeQuery.size());

#pragma omp parallel num_threads(team)
  {
    UnitRunner &runner = runners[static_cast<std::size_t>(threadNumber())];
    // Items lie heaviest first, so taking them one by one lets the threads end together.
#pragma omp for schedule(dynamic, 1)
    for (int unit = 0; unit < units; ++unit)
      runner.attend(plan.items[static_cast<std::size_t>(unit / variant.kvHeads)], unit % variant.kvHeads);
#pragma omp for schedule(dynamic, 8)
    for (int i = 0; i < merges; ++i)
      runner.merge(i);
  }
  return {};
}

} // namespace deft::exec
