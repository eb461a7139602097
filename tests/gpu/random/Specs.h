#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace deft::gpu_test {

/// The text of a spec with 320 attentions: every head dim with every ratio from 1 to 16, each with a type, a
/// layout, a page size, a mask and a score drawn at random. The same seed gives the same text. `every`: only
/// those whose index it divides. `only`: all have the mask or score of that name; empty: drawn ones.
/// `isOfBytes`: all caches that may be are of 8-bit floats; else a quarter is.
std::string randomSpec(std::uint64_t seed, int every = 1, const std::string &only = "",
                       bool isOfBytes = false);

/// The names of the masks and scores.
std::vector<std::string> hookNames();

} // namespace deft::gpu_test
