#pragma once

#include "compiler/spec/Variant.h"

#include <cstdint>
#include <optional>
#include <vector>

/// The positions that a mask can show a query: plain bounds on kv_pos, from q_pos and parameters, that
/// planners know before they plan.
namespace deft::spec {

/// times[0] * params[p0] + ... + constant, in exact arithmetic. An array stands for any one of its elements.
struct ParamSum {
  struct Term {
    int param = 0;
    std::int64_t times = 1;
    bool operator==(const Term &) const = default;
  };
  std::int64_t constant = 0;
  std::vector<Term> terms; ///< sorted by parameter, without repeats and without factors of 0

  bool isConstant() const { return terms.empty(); }
  bool operator==(const ParamSum &) const = default;
};
ParamSum operator+(const ParamSum &a, const ParamSum &b);
ParamSum operator*(const ParamSum &a, std::int64_t times);

/// An i32 expression that is a sum of positions and parameters.
struct PositionSum {
  /// times * (x + rest, rounded toward 0 to a multiple of `step`), where x is kv_pos or q_pos.
  struct Rounded {
    bool isOfKvPos = false;
    ParamSum rest, step;
    std::int64_t times = 1;
    bool hasSameBase(const Rounded &other) const {
      return isOfKvPos == other.isOfKvPos && rest == other.rest && step == other.step;
    }
    bool operator==(const Rounded &) const = default;
  };
  std::int64_t kvPos = 0, qPos = 0; ///< the factors of both
  std::vector<Rounded> rounded;
  ParamSum rest;

  bool isOfParamsAlone() const { return kvPos == 0 && qPos == 0 && rounded.empty(); }
  bool operator==(const PositionSum &) const = default;
};

/// Intervals of kv_pos; outside of them a query sees nothing. All bounds are necessary conditions: tokens
/// outside are hidden, and tokens inside may be hidden as well.
struct VisibleBounds {
  /// kv_pos >= at, or kv_pos < at; `at` does not contain kv_pos. Valid only if every sum of `fits` stays
  /// within i32 for all positions, because the language's arithmetic wraps around and these sums do not.
  struct Bound {
    PositionSum at;
    std::vector<PositionSum> fits;
  };
  struct Interval {
    std::vector<Bound> from, until;
    std::vector<Bound> conditions; ///< at >= 0, only of parameters; else the interval does not exist
    bool isAll() const { return from.empty() && until.empty() && conditions.empty(); }
  };
  /// A query sees nothing outside all of these; an empty list: it sees nothing at all. They have no order and
  /// may overlap.
  std::vector<Interval> intervals;
  MaskBound bound = MaskBound::Tree; ///< of the same mask; visible tokens lie within both

  static VisibleBounds everything(MaskBound bound = MaskBound::Tree) { return {{Interval{}}, bound}; }
};

/// The bounds of the variant's mask. Everything, if it has no mask or none of its conditions gives a bound.
VisibleBounds visibleBounds(const Variant &variant);

} // namespace deft::spec
