#pragma once

#include "compiler/spec/Variant.h"

#include <cstdint>
#include <optional>
#include <vector>

/// Which positions a mask can show a query at all: plain bounds on kv_pos, in q_pos and parameters, that
/// planners know before they plan.
namespace deft::spec {

/// times[0] * params[p0] + ... + constant, in exact arithmetic. An array stands for any of its elements.
struct ParamSum {
  struct Term {
    int param = 0;
    std::int64_t times = 1;
    bool operator==(const Term &) const = default;
  };
  std::int64_t constant = 0;
  std::vector<Term> terms; ///< by parameter, none twice, none 0 times

  bool isConstant() const { return terms.empty(); }
  bool operator==(const ParamSum &) const = default;
};
ParamSum operator+(const ParamSum &a, const ParamSum &b);
ParamSum operator*(const ParamSum &a, std::int64_t times);

/// An i32 expression that is a sum of positions and parameters.
struct PositionSum {
  /// times * x, where x is kv_pos or q_pos, plus `rest`, rounded toward 0 to a multiple of `step`.
  struct Rounded {
    bool isOfKvPos = false;
    ParamSum rest, step;
    std::int64_t times = 1;
    bool hasSameBase(const Rounded &other) const {
      return isOfKvPos == other.isOfKvPos && rest == other.rest && step == other.step;
    }
    bool operator==(const Rounded &) const = default;
  };
  std::int64_t kvPos = 0, qPos = 0; ///< how many times each
  std::vector<Rounded> rounded;
  ParamSum rest;

  bool isOfParamsAlone() const { return kvPos == 0 && qPos == 0 && rounded.empty(); }
  bool operator==(const PositionSum &) const = default;
};

/// Intervals of kv_pos; outside of them a query sees nothing. All bounds are necessary conditions: what a
/// bound leaves may still be hidden, what it takes away is.
struct VisibleBounds {
  /// kv_pos >= at, or kv_pos < at; `at` has no kv_pos. Holds where every one of `fits` stays within i32 for
  /// all positions: the language's arithmetic wraps around, a sum does not.
  struct Bound {
    PositionSum at;
    std::vector<PositionSum> fits;
  };
  struct Interval {
    std::vector<Bound> from, until;
    std::vector<Bound> conditions; ///< at >= 0, of parameters alone: else the interval is not there
    bool isAll() const { return from.empty() && until.empty() && conditions.empty(); }
  };
  /// A query sees nothing outside of all of them; none: it sees nothing at all. In no order, and they may
  /// overlap.
  std::vector<Interval> intervals;
  MaskBound bound = MaskBound::Tree; ///< of the same mask: what is seen is within both

  static VisibleBounds everything(MaskBound bound = MaskBound::Tree) { return {{Interval{}}, bound}; }
};

/// Of the variant's mask: everything without one, and where nothing can be said.
VisibleBounds visibleBounds(const Variant &variant);

} // namespace deft::spec
