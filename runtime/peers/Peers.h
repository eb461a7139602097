#pragma once

#include "compiler/support/Result.h"
#include "runtime/exec/MergeStates.h"
#include "runtime/peers/Agreement.h"
#include "runtime/peers/Segment.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace deft::peers {

struct PeersOptions {
  std::string name; ///< of this group of ranks: letters, digits, `_`, `-` and `.`
  int count = 1, rank = 0;
  std::int64_t bytes = 0;     ///< of a rank's largest results, out and lse together
  double timeoutSeconds = 10; ///< a rank that is later than this one by more is an error
};

/// A rank's results for all heads of all queries, without gaps.
struct RankResults {
  const void *out = nullptr;  ///< [query][head][dim]
  const float *lse = nullptr; ///< [query][head], natural; -inf: this rank saw no token
  exec::StateType type = exec::StateType::F32;
  std::int64_t queries = 0;
  int heads = 0, dim = 0;
};

/// Heads [begin, begin + count) of the merged results.
struct MergedHeads {
  int begin = 0, count = 0;
  void *out = nullptr;  ///< [query][count][dim]
  float *lse = nullptr; ///< [query][count]; may be null
};

/// The ranks of one host's processors, as processes or threads. Each has shared memory that all can read. All
/// ranks make the same calls in the same order. If a rank ends or is late, the others' calls fail, and so do
/// all later calls of the group.
///
/// Each rank has two alternating buffers. A rank that publishes call n has read the data of call n - 1. So
/// when all have published n, no rank reads the buffer of n - 1 any more; call n + 1 overwrites it.
class Peers {
public:
  /// Returns when all ranks have arrived.
  static support::Result<Peers> meet(const PeersOptions &options);
  Peers(Peers &&) noexcept = default;
  Peers &operator=(Peers &&) = delete;
  /// After this, the others' calls fail.
  ~Peers();

  int count() const { return options_.count; }
  int rank() const { return options_.rank; }

  /// An error that names a rank with different data, if there is one. `holders` (of pages or nodes, see
  /// `kind`) are compared if they fit, to name a page or node that two ranks claim.
  support::Result<void> agree(const Agreement &own, const std::string &kind, std::span<const int> holders);

  /// The data of each rank, of the same size for all; it must fit into the space for results.
  support::Result<std::vector<std::vector<std::byte>>> gather(std::span<const std::byte> own);

  /// Gives the others this rank's results and merges its heads of all ranks, in the order of the ranks.
  support::Result<void> merge(const RankResults &own, const MergedHeads &to);

private:
  struct Header;
  struct Call;
  explicit Peers(PeersOptions options) : options_(std::move(options)) {}

  support::Result<void> makeOwn();
  support::Result<void> openOthers();
  Header &header(int rank) const;
  Call &callOf(int rank) const;
  std::byte *buffer(int rank) const;
  std::string segmentName(int rank) const;
  template <class IsThere> support::Result<void> waitFor(int rank, const std::string &what, IsThere isThere);
  support::Result<void> checkUsable() const;
  support::Result<void> publish();
  support::Error fail(support::Error error);

  PeersOptions options_;
  std::vector<Segment> segments_; ///< of each rank
  std::uint64_t calls_ = 0;
};

} // namespace deft::peers
