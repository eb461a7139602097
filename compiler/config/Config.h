#pragma once

#include "compiler/config/CostCoefficients.h"
#include "compiler/spec/Variant.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

/// The chosen numbers: everything that selects one kernel among those that compute the same variant.
namespace deft::config {

/// What runs kernels.
enum class DeviceKind { Gpu, Cpu };

/// The families of attend kernels: the id, and the name of config files, of a GPU's header
/// templates/deft/attend_NAME.cuh and of the value deft::kernels::NAME (compiler/kernels/Family.h), which is
/// all else that is known of one. Newer ones stand last.
#define DEFT_KERNEL_FAMILIES(X)                                                                              \
  X(Cpu, cpu)                                                                                                \
  X(Sm80, sm80)                                                                                              \
  X(Sm90, sm90)                                                                                              \
  X(Sm80Latent, sm80_latent)                                                                                 \
  X(Sm90Latent, sm90_latent)

/// Which attend kernel.
enum class Family {
#define DEFT_FAMILY_ID(ID, NAME) ID,
  DEFT_KERNEL_FAMILIES(DEFT_FAMILY_ID)
#undef DEFT_FAMILY_ID
};

/// In which order items read their tokens. What many rows see is computed longer and is often in a cache;
/// what few see comes from memory. The orders differ in how much of the one is done during the other.
enum class Order {
  FromRoot,
  Alternate, ///< every other item from its leaves to its root
  Mixed      ///< tile by tile, what many rows of the item see and what few see in turn
};

inline constexpr std::array kAllOrders{Order::FromRoot, Order::Alternate, Order::Mixed};

/// Tile shape of the items of one phase. A phase is one kernel.
struct PhaseConfig {
  std::string name;   ///< "wide", "narrow"; part of the kernel's name
  int rowsAbove = -1; ///< serves items with more rows than this; the last phase has -1
  Family family = Family::Sm80;
  int tileQ = 16;  ///< most rows of an item; each family says which numbers it takes
  int tileKv = 64; ///< tokens
  int stages = 2;  ///< depth of the ring of KV tiles
  int warps = 4;   ///< sm80: tileQ / 16 of them split rows, the rest the tokens of a tile
};

struct Config {
  spec::Partition partition = spec::Partition::Union;
  int chunkTokens = 0;             ///< most tokens of an item; 0: only as many chunks as fill the machine
  std::vector<PhaseConfig> phases; ///< by falling rowsAbove, at least one
  CostCoefficients cost;           ///< by which `greedy` and `auto` compare
  Order order = Order::FromRoot;   ///< of invariant plans always this
};

/// Of the widest phase: what an item holds at most.
inline int mostRows(const Config &config) {
  int rows = 0;
  for (const PhaseConfig &phase : config.phases)
    rows = std::max(rows, phase.tileQ);
  return rows;
}

/// Which phase serves items of so many rows: the first that is for them, or the widest, where that one's tile
/// does not hold them.
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
