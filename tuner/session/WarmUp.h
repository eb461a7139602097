#pragma once

#include "tuner/session/CompilePool.h"
#include "tuner/session/Related.h"
#include "tuner/space/Space.h"

#include <chrono>
#include <functional>
#include <span>

namespace deft::session {

/// What the classes of a session begin with: the untuned choices, what is related to each class, and, where
/// one is searched, kernels that a search begins with.
std::vector<config::Config> firstConfigs(const std::vector<config::Config> &untuned,
                                         std::span<const Related> ofClasses, const space::Space &space);

/// Compiles these before the first class's time runs: that would be over before it had a kernel to race. What
/// is left at the `end` goes on being compiled. `tell` hears how many are left, and says whether to go on.
void warmUp(CompilePool &compilers, const std::vector<config::Config> &configs,
            std::chrono::steady_clock::time_point end, const std::function<bool(int left)> &tell);

/// Seconds from the session's begin until then; a budget of 0: there is none.
double warmUpSeconds(double budgetSeconds);

} // namespace deft::session
