#pragma once

/// What host and device agree on of ranks that merge their results: by peer memory, or by messages.
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

/// What a rank counts of its exchanges by messages, in its GPU's memory.
struct SlicesState {
  unsigned long long runs;   ///< that are done
  unsigned long long broken; ///< the run in which a message was missing, or 0: later ones do nothing any more
  int arrived;               ///< blocks of the merge under way that are done
  int reserved[3];
};
static_assert(sizeof(SlicesState) == 32);

/// What the host sees of them while they run, in its own memory.
struct SlicesWatch {
  unsigned long long begun;   ///< the last run whose messages lie ready to be sent
  unsigned long long ended;   ///< the last run that is merged, or given up
  unsigned long long missing; ///< the ranks without whose messages a run was given up, a bit each
  unsigned long long missed;  ///< that run
};

/// One rank's launch of deft_pack_slices or deft_merge_slices. A message is for the rank that merges a slice
/// of the heads, or from each rank to it: rows [query][head of the slice][dim], packed, then their logarithms
/// and, at a multiple of 8 bytes, the number of the run.
struct SlicesArgs {
  struct Slice {
    int begin, count; ///< heads
  };
  void *messages[PeerMemory::kMostRanks]; ///< to pack: for each rank; to merge: from each rank
  Slice slices[PeerMemory::kMostRanks];   ///< of each rank
  const void *own;                        ///< to pack: [query][head][dim], this rank's results
  const float *ownLse;                    ///< [query][head], natural; -inf: no token of this rank
  void *out;                              ///< to merge: [query][headCount][dim]
  float *lse;                             ///< [query][headCount]; may be null
  int count;                              ///< ranks
  int queries, dim;
  int heads;                ///< of a row of `own`, or of a message
  int headBegin, headCount; ///< of a message, that are merged
  int lanesOfRow;           ///< of a warp, a power of two
  SlicesState *state;
  SlicesWatch *watch;
};

} // namespace deft::abi
