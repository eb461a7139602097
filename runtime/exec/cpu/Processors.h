#pragma once

namespace deft::exec {

/// How many processors this process may use: in a container or under taskset not all of the machine's.
int usableProcessors();

/// Limit of threads: more bring no gain, and the system might not be able to start them.
constexpr int kMostThreads = 1024;

} // namespace deft::exec
