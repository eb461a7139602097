#pragma once

#include "tuner/session/Tune.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace deft::session {

/// Trees to tune for by a name: a family (workload::families()), `all` of them, `rows`, the trees of the
/// tables of benchmarks, or a workload as workload::make() takes it. Recorded workloads lie in
/// `recordsFolder`; where that is empty, `rows` does without them.
support::Result<std::vector<Sample>> namedSamples(std::string_view name, std::uint64_t seed,
                                                  const std::string &recordsFolder);

} // namespace deft::session
