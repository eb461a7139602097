#pragma once

namespace deft::exec {

/// How many processors this process may use: fewer than the machine has in a container or under taskset.
int usableProcessors();

/// The most threads that are started for anybody: of more nobody gains, and the system may not give them.
constexpr int kMostThreads = 1024;

} // namespace deft::exec
