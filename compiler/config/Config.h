#pragma once

#include "compiler/config/CostCoefficients.h"
#include "compiler/spec/Variant.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

/// The chosen numbers: everything that selects one of the kernels that compute the same variant.
namespace deft::config {

/// The kind of device that runs kernels.
enum class DeviceKind { Gpu, Cpu };

/// The families of attend kernels: the id, and a name. Config files, the header
/// templates/deft/attend_NAME.cuh of a GPU's family, and the value deft::kernels::NAME use this name; the
/// value (compiler/kernels/Family.h) holds everything else about a family. Append new ones.
#define DEFT_KERNEL_FAMILIES(X)                                                                              \
  X(Cpu, cpu)                                                                                                \
  X(Sm80, sm80)                                                                                              \
  X(Sm90, sm90)                                                                                              \
  X(Sm80Latent, sm80_latent)                                                                                 \
  X(Sm90Latent, sm90_latent)

/// The family of the attend kernel.
enum class Family {
#define DEFT_FAMILY_ID(ID, NAME) ID,
  DEFT_KERNEL_FAMILIES(DEFT_FAMILY_ID)
#undef DEFT_FAMILY_ID
};

/// The order in which items read their tokens. Tokens that many rows see take longer to compute and are often
/// cached; tokens that few rows see come from memory. The orders differ in how these overlap.
enum class Order {
  FromRoot,
  Alternate, ///< every other item reads from its leaves to its root
  Mixed      ///< alternates tiles of tokens that many rows of the item see with tiles for few
};

inline constexpr std::array kAllOrders{Order::FromRoot, Order::Alternate, Order::Mixed};

/// The tile shape for the items of one phase. Each phase is one kernel.
struct PhaseConfig {
  std::string name;   ///< "wide", "narrow"; part of the kernel's name
  int rowsAbove = -1; ///< serves items with more rows than this; the last phase has -1
  Family family = Family::Sm80;
  int tileQ = 16;  ///< most rows of an item; each family accepts certain numbers
  int tileKv = 64; ///< tokens
  int stages = 2;  ///< depth of the ring of KV tiles
  int warps = 4;   ///< sm80: tileQ / 16 of them divide the rows, the others the tokens of a tile
};

struct Config {
  spec::Partition partition = spec::Partition::Union;
  int chunkTokens = 0;             ///< most tokens of an item; 0: as few chunks as keep all blocks busy
  std::vector<PhaseConfig> phases; ///< at least one, by falling rowsAbove
  CostCoefficients cost;           ///< the prices for `greedy` and `auto`
  Order order = Order::FromRoot;   ///< invariant plans always use this one
};

/// The most rows of an item in any phase.
inline int mostRows(const Config &config) {
  int rows = 0;
  for (const PhaseConfig &phase : config.phases)
    rows = std::max(rows, phase.tileQ);
  return rows;
}

/// The phase for items with so many rows: the first phase that accepts them, or the widest phase if the tile
/// of that one is too small.
inline std::size_t phaseFor(const Config &config, int rows) {
  const std::vector<PhaseConfig> &phases = config.phases;
  std::size_t chosen = 0;
  while (chosen + 1 < phases.size() && rows <= phases[chosen].rowsAbove)
    ++chosen;
  if (phases[chosen].tileQ >= rows)
    return chosen;
  const auto widest =
      std::max_element(phases.begin(), phases.end(),
                       [](const PhaseConfig &a, const PhaseConfig &b) { return a.tileQ < b.tileQ; });
  return static_cast<std::size_t>(widest - phases.begin());
}

} // namespace deft::config
