#pragma once

#include "compiler/spec/Variant.h"
#include "compiler/support/Result.h"
#include "runtime/exec/Inputs.h"
#include "runtime/plan/Plan.h"

#include <cstdint>
#include <optional>

/// Who looks for NaN and infinities. They need not show in a result: a row whose scores are NaN may look like
/// one that sees nothing (LANGUAGE.md, rule N5).
namespace deft::exec {

/// What a run has written, as OutputView says it.
struct ResultView {
  const std::uint16_t *out = nullptr;
  const float *lse = nullptr; ///< null: not wanted
  long long outStride = 0;
};

/// The first row, by query and head, that has a NaN or an infinity in q, in keys and values that it reads, in
/// its lse or in its output, and of that row the first of these: an error that names both. None: all is
/// finite, except an lse of -inf. `reach` is that of the run's mask: what it hides for certain is not looked
/// at. All memory is the host's.
std::optional<support::Error> findNotFinite(const spec::Variant &variant, const plan::Plan &plan,
                                            const plan::Reach &reach, const InputView &inputs,
                                            const ResultView &results);

} // namespace deft::exec
