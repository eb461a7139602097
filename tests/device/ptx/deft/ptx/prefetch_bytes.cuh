#pragma once

namespace deft::ptx {

inline void prefetchBytes(const void *, unsigned) {}

} // namespace deft::ptx
