#pragma once

#include "tuner/session/Tune.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace deft::session {

/// Trees to tune a variant for, by a name: a family (workload::families()), `all` of them, `rows`, the trees
/// of the benchmarks' tables for its heads (else those for 32/8), or a workload as workload::make() takes it.
/// Recorded workloads lie in `recordsFolder`; where that is empty, `rows` does without them.
support::Result<std::vector<Sample>> namedSamples(std::string_view name, const spec::Variant &variant,
                                                  std::uint64_t seed, const std::string &recordsFolder);

} // namespace deft::session
