#pragma once

#include "compiler/spec/Variant.h"
#include "compiler/support/Result.h"
#include "runtime/exec/Inputs.h"
#include "runtime/plan/Plan.h"

#include <cstdint>
#include <optional>

/// Looks for NaN and infinities. A result need not show them: a row with NaN scores may look like a row that
/// sees nothing (LANGUAGE.md, rule N5).
namespace deft::exec {

/// The results of a run, laid out as in OutputView.
struct ResultView {
  const std::uint16_t *out = nullptr;
  const float *lse = nullptr; ///< null: not wanted
  long long outStride = 0;
};

/// Finds the first row (by query, then head) with a NaN or infinity in q, in the keys and values that it
/// reads, in its lse or in its output. The error names the row and the first such value. None: all values are
/// finite, except that lse may be -inf. `reach` is the reach of the run's mask: tokens that it hides for
/// certain are not checked. All memory is the host's.
std::optional<support::Error> findNotFinite(const spec::Variant &variant, const plan::Plan &plan,
                                            const plan::Reach &reach, const InputView &inputs,
                                            const ResultView &results);

} // namespace deft::exec
