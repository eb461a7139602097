#pragma once

#include <cstdint>
#include <span>

/// What the machine can do at best, by loops that do nothing else.
namespace deft::bench {

/// One pass over both buffers, front to back, split between the threads.
double readSeconds(std::span<const std::uint16_t> k, std::span<const std::uint16_t> v, int threads);

/// f32 multiply-adds (two flops each) on registers, of all threads together, at the vector width of x86-64-v3
/// or v4. Measured over some milliseconds.
double flopsPerSecond(int threads, int isaLevel);

} // namespace deft::bench
