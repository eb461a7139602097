#pragma once

#include "templates/deft/abi.h"

#include <cstdint>
#include <vector>

/// Merges partial attentions of the same rows on the host: the twin of
/// templates/deft/merge_states.cuh.
namespace deft::exec {

/// The numbers are DLPack's: type code and bits.
enum class StateType { F32 = 0x0220, F16 = 0x0210, BF16 = 0x0410 };

constexpr int bytesOf(StateType type) { return type == StateType::F32 ? 4 : 2; }

/// `args` points to host memory; lanesOfRow is not used. Any element type and any dim will do.
void mergeStates(const abi::StatesArgs &args, StateType type);

/// Parts of the same rows; some heads are merged. The twin of templates/deft/merge_peers.cuh.
struct PartsOfRows {
  std::vector<const void *> outs;  ///< [query][head][dim], packed
  std::vector<const float *> lses; ///< [query][head], natural log
  std::int64_t queries = 0;
  int heads = 0, dim = 0;
  int headBegin = 0, headCount = 0; ///< the heads to merge
};

/// Writes [query][headCount][dim] and [query][headCount]; `lse` may be null. Neither may be one of the parts.
void mergeHeads(const PartsOfRows &parts, StateType type, void *out, float *lse);

} // namespace deft::exec
