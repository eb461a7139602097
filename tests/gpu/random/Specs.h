#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace deft::gpu_test {

struct SpecOptions {
  int every = 1;                ///< only attentions whose index it divides
  std::string hook;             ///< the mask or score of all attentions; empty: drawn ones
  bool isOfBytes = false;       ///< all caches that may be are of 8-bit floats; else a quarter is
  bool multipliesBytes = false; ///< all have products of 8 bits, which GPUs have kernels for at two head dims
  bool isLatent = false;        ///< all caches are latent
  bool isUnlike = false;        ///< K and V of all caches have dims of their own; else of a few
  bool selects = false; ///< attentions select tokens, and none has the bound `path` (rule K6); latent caches
                        ///< have given lists (K7)
};

/// The text of a spec with 320 attentions: every head dim with every ratio from 1 to 16, each with a type, a
/// layout, a page size, a mask and a score drawn at random; and with 60 whose K and V have dims of their own.
/// The same seed gives the same text.
std::string randomSpec(std::uint64_t seed, const SpecOptions &options = {});

/// The names of the masks and scores.
std::vector<std::string> hookNames();

} // namespace deft::gpu_test
