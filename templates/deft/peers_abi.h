#pragma once

/// The contract between host and device for ranks that merge their results, by peer memory or by messages.
namespace deft::abi {

/// A rank's memory, which all ranks map: flags, counters, and two alternating buffers of results.
struct PeerMemory {
  static constexpr int kMostRanks = 64;

  /// The last replay whose results each rank has published; rank r stores flags[r] in every rank's memory.
  unsigned long long flags[kMostRanks];

  // Only the owner accesses these:
  unsigned long long replays; ///< finished replays
  unsigned long long broken;  ///< the replay in which a rank was late, or 0: later ones do nothing
  int arrived; ///< blocks of the current replay: first those that have copied, then finished ones
  int reserved[27];
};
static_assert(sizeof(PeerMemory) == 640); // buffers begin at lines of 128 bytes

/// One rank's launch of deft_merge_peers. A buffer has the rows of `out`, packed, then their logarithms.
struct PeersArgs {
  PeerMemory *ranks[PeerMemory::kMostRanks]; ///< of each rank, as this device maps it
  long long bufferBytes;                     ///< distance between the buffers, a multiple of 16
  const void *own;                           ///< [query][head][dim], this rank's results
  const float *ownLse;                       ///< [query][head], natural; -inf: this rank saw no token
  void *out;                                 ///< [query][headCount][dim], merged
  float *lse;                                ///< [query][headCount]; may be null
  int count;                                 ///< ranks
  int rank;                                  ///< this one
  int queries, heads, dim;
  int headBegin, headCount;  ///< the heads that this rank merges
  int lanesOfRow;            ///< lanes for a row, a power of two
  unsigned long long mostNs; ///< the wait for a rank ends after this time
  unsigned long long *late;  ///< in the host's memory: that rank + 1 and, above 32 bits, the replay
};

/// A rank's counters for its exchanges by messages, in its GPU's memory.
struct SlicesState {
  unsigned long long runs;   ///< finished runs
  unsigned long long broken; ///< the run in which a message was missing, or 0: later ones do nothing
  int arrived;               ///< finished blocks of the current merge
  int reserved[3];
};
static_assert(sizeof(SlicesState) == 32);

/// The state of exchanges that the host can read while they run, in its own memory.
struct SlicesWatch {
  unsigned long long begun;   ///< the last run whose messages are ready to send
  unsigned long long ended;   ///< the last run that was merged or given up
  unsigned long long missing; ///< a bit for each rank whose missing message made a run give up
  unsigned long long missed;  ///< that run
};

/// One rank's launch of deft_pack_slices or deft_merge_slices. A message goes to the rank that merges a slice
/// of the heads, or comes from each rank to it. It has rows [query][head of the slice][dim], packed, then
/// their logarithms and, at a multiple of 8 bytes, the number of the run.
struct SlicesArgs {
  struct Slice {
    int begin, count; ///< heads
  };
  void *messages[PeerMemory::kMostRanks]; ///< to pack: for each rank; to merge: from each rank
  Slice slices[PeerMemory::kMostRanks];   ///< of each rank
  const void *own;                        ///< to pack: [query][head][dim], this rank's results
  const float *ownLse;                    ///< [query][head], natural; -inf: this rank saw no token
  void *out;                              ///< to merge: [query][headCount][dim]
  float *lse;                             ///< [query][headCount]; may be null
  int count;                              ///< ranks
  int queries, dim;
  int heads;                ///< in a row of `own`, or of a message
  int headBegin, headCount; ///< the heads of a message to merge
  int lanesOfRow;           ///< lanes for a row, a power of two
  SlicesState *state;
  SlicesWatch *watch;
};

} // namespace deft::abi
