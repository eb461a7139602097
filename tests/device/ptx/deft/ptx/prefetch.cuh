#pragma once

namespace deft::ptx {

inline void prefetch(const void *) {}

} // namespace deft::ptx
