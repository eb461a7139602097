#pragma once

/// What host and device agree on of ranks that merge their results by peer memory.
namespace deft::abi {

/// A rank's memory, which all ranks map: flags, counters, and two buffers of results, in turn.
struct PeerMemory {
  static constexpr int kMostRanks = 64;

  /// The last replay whose results each rank has published; rank r stores flags[r] of every rank's memory.
  unsigned long long flags[kMostRanks];

  // Of the owner, whom nobody else asks:
  unsigned long long replays; ///< that are done
  unsigned long long broken;  ///< the replay in which a rank was late, or 0: later ones do nothing any more
  int arrived; ///< blocks of the replay under way: first those that have copied, then those that are done
  int reserved[27];
};
static_assert(sizeof(PeerMemory) == 640); // buffers begin at lines of 128 bytes

/// One rank's launch of deft_merge_peers. A buffer has the rows of `out`, packed, and then their logarithms.
struct PeersArgs {
  PeerMemory *ranks[PeerMemory::kMostRanks]; ///< of each rank, as this device maps it
  long long bufferBytes;                     ///< from a buffer to the next one, a multiple of 16
  const void *own;                           ///< [query][head][dim], this rank's results
  const float *ownLse;                       ///< [query][head], natural; -inf: no token of this rank
  void *out;                                 ///< [query][headCount][dim], merged
  float *lse;                                ///< [query][headCount]; may be null
  int count;                                 ///< ranks
  int rank;                                  ///< this one
  int queries, heads, dim;
  int headBegin, headCount;  ///< that this rank merges
  int lanesOfRow;            ///< of a warp, a power of two
  unsigned long long mostNs; ///< a rank that is so late ends the wait
  unsigned long long *late;  ///< in the host's memory: that rank + 1 and, above 32 bits, the replay
};

} // namespace deft::abi
