#pragma once

namespace deft::jit {

/// How many processors this process may use: fewer than the machine has in a container or under taskset.
int usableProcessors();

} // namespace deft::jit
