#pragma once

#include "tuner/session/Tune.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace deft::session {

/// Trees to tune a variant for, by a name: a family (workload::families()); `all` families; `rows`, the trees
/// of the benchmark tables for its heads (or for 32/8); or a workload in the syntax of workload::make().
/// Recorded workloads are in `recordsFolder`; if that is empty, `rows` omits them.
support::Result<std::vector<Sample>> namedSamples(std::string_view name, const spec::Variant &variant,
                                                  std::uint64_t seed, const std::string &recordsFolder);

} // namespace deft::session
