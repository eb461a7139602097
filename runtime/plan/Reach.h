#pragma once

#include "compiler/spec/VisibleBounds.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace deft::plan {

/// The range of a parameter's elements. An empty optional means that the value is not known yet.
struct ParamRange {
  std::int64_t least = 0, most = 0;
  bool operator==(const ParamRange &) const = default;
};
using ParamRanges = std::vector<std::optional<ParamRange>>; ///< one for each parameter of a variant

/// The ranges of parameters that keep their default values.
ParamRanges defaultRanges(const spec::Variant &variant);

/// Positions on a path: [begin, end).
struct Positions {
  int begin = 0;
  int end = 0;
  bool operator==(const Positions &) const = default;
};

/// The positions that a mask can show a query: spec::VisibleBounds with the parameters' values. Positions
/// outside are hidden for certain; for those inside the kernels decide. If the mask's bound is `path`,
/// positions continue past the query's own to kNowhere, since only the caller knows where the path ends.
class Reach {
public:
  static constexpr int kNowhere = std::numeric_limits<int>::max();

  /// A mask that hides nothing.
  Reach() = default;
  /// A bound that depends on a parameter with an unknown value is ignored.
  static Reach of(const spec::VisibleBounds &bounds, const ParamRanges &params);
  static Reach ofDefaults(const spec::Variant &variant) {
    return of(spec::visibleBounds(variant), defaultRanges(variant));
  }

  /// The positions that may be visible if the true q_pos is up to `below` less, or up to `above` more, than
  /// the q_pos in a call.
  Reach widened(int below, int above) const;

  /// The same bound, without a mask.
  Reach withoutMask() const {
    Reach reach;
    reach.seesPath_ = seesPath_;
    return reach;
  }

  /// Whether it hides nothing within the bound `tree`.
  bool isAll() const { return isAll_ && !seesPath_; }
  /// Whether the mask's bound is `path`.
  bool seesPath() const { return seesPath_; }
  /// The first visible position at or after `position` for a query at q_pos, or kNowhere.
  int firstFrom(int qPos, int position) const { return firstFrom(std::span(&qPos, 1), 0, position); }
  /// The same for several queries after each has gained `growth` tokens. If the mask has gaps, any of the
  /// queries may be the first to see a position.
  int firstFrom(std::span<const int> qPos, int growth, int position) const;
  /// No query at this q_pos or a later one sees a position before this.
  int lowest(int qPos) const;
  /// The end of the last position that a query at q_pos can see; 0 if it sees none.
  int endOfSeen(int qPos) const;
  /// The union of the positions that queries from q_pos `first` to `last` can see: ascending, disjoint
  /// intervals, up to `last` or, with the bound `path`, to kNowhere.
  void find(int first, int last, std::vector<Positions> &to) const;

  /// Whether the first visible position rises with q_pos, as in a window.
  bool hasRisingStart() const { return hasRisingStart_; }
  /// Whether the end rises with q_pos otherwise than under `tree`. Then a later query sees tokens that were
  /// hidden from an earlier one although they were on its path.
  bool hasRisingEnd() const { return hasRisingEnd_; }
  /// Whether a rise of q_pos from `before` to `now` hides tokens between visible ones: a window that moves
  /// away from its sink.
  bool opensGap(int before, int now) const {
    return std::any_of(gapsFrom_.begin(), gapsFrom_.end(),
                       [&](int qPos) { return before < qPos && qPos <= now; });
  }

  bool operator==(const Reach &) const = default;

private:
  /// perQPos * q_pos + offset + ((roundedPerQPos * q_pos + roundedOffset) rounded toward 0 to a multiple of
  /// step). Does not decrease when q_pos rises.
  struct Edge {
    std::int64_t perQPos = 0, offset = 0;
    std::int64_t roundedPerQPos = 0, roundedOffset = 0, step = 1;

    std::int64_t at(std::int64_t qPos) const {
      return perQPos * qPos + offset + (roundedPerQPos * qPos + roundedOffset) / step * step;
    }
    Edge moved(std::int64_t byQPos) const {
      Edge edge = *this;
      edge.offset += perQPos * byQPos;
      edge.roundedOffset += roundedPerQPos * byQPos;
      return edge;
    }
    bool isRising() const { return perQPos > 0 || roundedPerQPos > 0; }
    /// Whether, as an end, it lies at or behind the end that the bound `tree` sets.
    bool isBehindAll() const {
      return (perQPos == 1 && roundedPerQPos == 0 && offset >= 1) ||
             (perQPos == 0 && roundedPerQPos == 1 && roundedOffset >= 0 && offset >= step);
    }
    bool operator==(const Edge &) const = default;
  };
  struct Interval { ///< from the largest of `from` to the smallest of `until`
    std::vector<Edge> from, until;
    bool operator==(const Interval &) const = default;
  };
  class Resolver;

  void findGaps();
  static std::int64_t startOf(const Interval &interval, int qPos);
  std::int64_t endOf(const Interval &interval, int qPos) const;
  std::int64_t endOfBound(int qPos) const {
    return seesPath_ ? std::int64_t{kNowhere} : std::int64_t{qPos} + 1;
  }

  bool isAll_ = true, seesPath_ = false;
  bool hasRisingStart_ = false, hasRisingEnd_ = false;
  std::vector<Interval> intervals_;
  std::vector<int> gapsFrom_; ///< q_pos from which one interval lies behind the fixed end of another
};

} // namespace deft::plan
