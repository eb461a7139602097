#pragma once

#include "compiler/spec/VisibleBounds.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace deft::plan {

/// What values a parameter's elements have; none: it is not known yet.
struct ParamRange {
  std::int64_t least = 0, most = 0;
  bool operator==(const ParamRange &) const = default;
};
using ParamRanges = std::vector<std::optional<ParamRange>>; ///< of each parameter of a variant

/// The ranges of parameters that have their defaults.
ParamRanges defaultRanges(const spec::Variant &variant);

/// Positions of a path, [begin, end).
struct Positions {
  int begin = 0;
  int end = 0;
  bool operator==(const Positions &) const = default;
};

/// Which positions a mask can show a query, its parameters known: spec::VisibleBounds in numbers. What is
/// outside is hidden for certain; what is inside, the kernels decide. Where the mask's bound is `path`,
/// positions go on past a query's own, to kNowhere: who asks knows where the path ends.
class Reach {
public:
  static constexpr int kNowhere = std::numeric_limits<int>::max();

  /// Everything.
  Reach() = default;
  /// A bound that asks for a parameter whose value is not known says nothing.
  static Reach of(const spec::VisibleBounds &bounds, const ParamRanges &params);
  static Reach ofDefaults(const spec::Variant &variant) {
    return of(spec::visibleBounds(variant), defaultRanges(variant));
  }

  /// What a query can see whose q_pos is known to be less by at most `below` or more by at most `above` than
  /// the one that is asked.
  Reach widened(int below, int above) const;

  /// Everything that is within the same bound.
  Reach withoutMask() const {
    Reach reach;
    reach.seesPath_ = seesPath_;
    return reach;
  }

  /// All that a query ever sees whose mask's bound is `tree`.
  bool isAll() const { return isAll_ && !seesPath_; }
  /// The mask's bound is `path`.
  bool seesPath() const { return seesPath_; }
  /// The first position from `position` on that a query at q_pos can see, or kNowhere.
  int firstFrom(int qPos, int position) const { return firstFrom(std::span(&qPos, 1), 0, position); }
  /// The same of several queries, once each has gained so many tokens. Where a mask has gaps, any of them may
  /// be the one that sees it.
  int firstFrom(std::span<const int> qPos, int growth, int position) const;
  /// No query of this q_pos, or of a later one, sees a token before that.
  int lowest(int qPos) const;
  /// Past the last position that a query at q_pos can see; 0 where it sees none.
  int endOfSeen(int qPos) const;
  /// What queries from q_pos `first` to `last` can see, all taken together: ascending, apart from each other,
  /// and from 0 to `last` at most, or to kNowhere.
  void find(int first, int last, std::vector<Positions> &to) const;

  /// Whether queries that come later begin to see later: a window.
  bool hasRisingStart() const { return hasRisingStart_; }
  /// Whether they see what earlier ones at the same place of the path did not, though it was there and not
  /// behind those.
  bool hasRisingEnd() const { return hasRisingEnd_; }
  /// Whether a query whose q_pos rises from `before` to `now` loses tokens between others that it goes on to
  /// see: its window leaves a sink.
  bool opensGap(int before, int now) const {
    return std::any_of(gapsFrom_.begin(), gapsFrom_.end(),
                       [&](int qPos) { return before < qPos && qPos <= now; });
  }

  bool operator==(const Reach &) const = default;

private:
  /// perQPos * q_pos + offset + ((roundedPerQPos * q_pos + roundedOffset) rounded toward 0 to a multiple of
  /// step). Never falls with q_pos.
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
    /// As an end: not before the end of what `tree` shows.
    bool isBehindAll() const {
      return (perQPos == 1 && roundedPerQPos == 0 && offset >= 1) ||
             (perQPos == 0 && roundedPerQPos == 1 && roundedOffset >= 0 && offset >= step);
    }
    bool operator==(const Edge &) const = default;
  };
  struct Interval { ///< from the largest of `from` to the least of `until`
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
  std::vector<int> gapsFrom_; ///< the first q_pos where one interval begins behind the fixed end of another
};

} // namespace deft::plan
