#pragma once

namespace deft::ptx {

inline void useNever(const unsigned (&)[4][4], unsigned) {}
inline void useNever(const unsigned (&)[4], unsigned) {}

} // namespace deft::ptx
