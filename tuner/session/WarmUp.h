#pragma once

#include "tuner/session/CompilePool.h"
#include "tuner/session/Related.h"
#include "tuner/space/Space.h"

#include <chrono>
#include <functional>
#include <span>

namespace deft::session {

/// The first configs of a session's classes: the untuned choices, the configs related to each class, and, if
/// a class is searched, the kernels for the start of a search.
std::vector<config::Config> firstConfigs(const std::vector<config::Config> &untuned,
                                         std::span<const Related> ofClasses, const space::Space &space);

/// Compiles these before the first class's time starts: otherwise that would end before a kernel is ready.
/// Compilation continues after `end`. `tell` receives the number left and returns whether to continue.
void warmUp(CompilePool &compilers, const std::vector<config::Config> &configs,
            std::chrono::steady_clock::time_point end, const std::function<bool(int left)> &tell);

/// Seconds from the session's start to that time; a budget of 0 means none.
double warmUpSeconds(double budgetSeconds);

} // namespace deft::session
