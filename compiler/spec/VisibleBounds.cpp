#include "compiler/spec/VisibleBounds.h"

#include <algorithm>
#include <map>
#include <utility>

namespace deft::spec {

namespace {

using Interval = VisibleBounds::Interval;
using Bound = VisibleBounds::Bound;

/// A union of intervals, too large where it errs.
using Region = std::vector<Interval>;

/// More intervals than this are none that a model has; more bounds of one say nothing new.
constexpr std::size_t kMostIntervals = 8;
constexpr std::size_t kMostBounds = 4;
/// Comparisons of `min`, `max` and choices fall apart into several: a bound on how many.
constexpr int kMostComparisons = 256;

Region everything() { return {Interval{}}; }
bool isEverything(const Region &region) {
  return std::any_of(region.begin(), region.end(), [](const Interval &one) { return one.isAll(); });
}

Region either(Region a, const Region &b) {
  a.insert(a.end(), b.begin(), b.end());
  return a.size() > kMostIntervals || isEverything(a) ? everything() : a;
}

void append(std::vector<Bound> &to, const std::vector<Bound> &more) {
  for (const Bound &bound : more)
    if (to.size() < kMostBounds) // each of them alone is right
      to.push_back(bound);
}

Region both(const Region &a, const Region &b) {
  if (a.size() * b.size() > kMostIntervals)
    return a.size() < b.size() ? a : b; // either is too large, not wrong
  Region result;
  for (const Interval &one : a)
    for (const Interval &other : b) {
      result.push_back(one);
      append(result.back().from, other.from);
      append(result.back().until, other.until);
      append(result.back().conditions, other.conditions);
    }
  return result;
}

PositionSum negated(PositionSum a) {
  a.kvPos = -a.kvPos;
  a.qPos = -a.qPos;
  for (PositionSum::Rounded &part : a.rounded)
    part.times = -part.times;
  a.rest = a.rest * -1;
  return a;
}

PositionSum sum(PositionSum a, const PositionSum &b) {
  a.kvPos += b.kvPos;
  a.qPos += b.qPos;
  a.rest = a.rest + b.rest;
  for (const PositionSum::Rounded &part : b.rounded) {
    const auto same = std::find_if(a.rounded.begin(), a.rounded.end(),
                                   [&](const PositionSum::Rounded &own) { return own.hasSameBase(part); });
    if (same == a.rounded.end()) {
      a.rounded.push_back(part);
      continue;
    }
    same->times += part.times;
    if (same->times == 0)
      a.rounded.erase(same);
  }
  return a;
}

PositionSum plus(PositionSum a, std::int64_t constant) {
  a.rest.constant += constant;
  return a;
}

class Derivation {
public:
  explicit Derivation(const Variant &variant) : exprs_(variant.exprs), params_(variant.params) {}

  /// Where a bool can be true, or false.
  Region where(ExprId id, bool value) {
    if (depth_ >= kMostDepth)
      return everything();
    const auto [known, isNew] = regions_.try_emplace({id, value});
    if (isNew) {
      ++depth_;
      known->second = whereNew(id, value);
      --depth_;
    }
    return known->second;
  }

private:
  Region whereNew(ExprId id, bool value) {
    const Expr &expr = exprs_[id];
    const auto operand = [&](int i) { return expr.operands[static_cast<std::size_t>(i)]; };
    switch (expr.op) {
    case ExprOp::Constant:
      return (expr.value != 0) == value ? everything() : Region{};
    case ExprOp::Not:
      return where(operand(0), !value);
    case ExprOp::And:
    case ExprOp::Or: {
      const bool needsBoth = (expr.op == ExprOp::And) == value;
      const Region a = where(operand(0), value), b = where(operand(1), value);
      return needsBoth ? both(a, b) : either(a, b);
    }
    case ExprOp::Select:
      return either(both(where(operand(0), true), where(operand(1), value)),
                    both(where(operand(0), false), where(operand(2), value)));
    case ExprOp::Eq:
    case ExprOp::Ne: {
      const bool isEqual = (expr.op == ExprOp::Eq) == value;
      if (exprs_[operand(0)].type == ScalarType::Bool)
        return either(both(where(operand(0), true), where(operand(1), isEqual)),
                      both(where(operand(0), false), where(operand(1), !isEqual)));
      return isEqual ? both(compare(operand(0), operand(1), 0), compare(operand(1), operand(0), 0))
                     : everything();
    }
    case ExprOp::Lt: // a < b, else b <= a
      return value ? compare(operand(0), operand(1), 1) : compare(operand(1), operand(0), 0);
    case ExprOp::Le:
      return value ? compare(operand(0), operand(1), 0) : compare(operand(1), operand(0), 1);
    case ExprOp::Gt:
      return value ? compare(operand(1), operand(0), 1) : compare(operand(0), operand(1), 0);
    case ExprOp::Ge:
      return value ? compare(operand(1), operand(0), 0) : compare(operand(0), operand(1), 1);
    default:
      return everything();
    }
  }

  /// Where a + least <= b can hold.
  Region compare(ExprId a, ExprId b, int least) {
    if (exprs_[a].type != ScalarType::I32 || ++comparisons_ > kMostComparisons)
      return everything();
    const Expr &left = exprs_[a], &right = exprs_[b];
    const auto ofLeft = [&](int i) { return compare(left.operands[static_cast<std::size_t>(i)], b, least); };
    const auto ofRight = [&](int i) {
      return compare(a, right.operands[static_cast<std::size_t>(i)], least);
    };
    switch (left.op) {
    case ExprOp::Max:
      return both(ofLeft(0), ofLeft(1));
    case ExprOp::Min:
      return either(ofLeft(0), ofLeft(1));
    case ExprOp::Abs:
      return both(ofLeft(0), compareNegated(left.operands[0], b, least));
    case ExprOp::Select:
      return either(both(where(left.operands[0], true), ofLeft(1)),
                    both(where(left.operands[0], false), ofLeft(2)));
    default:
      break;
    }
    switch (right.op) {
    case ExprOp::Max:
      return either(ofRight(0), ofRight(1));
    case ExprOp::Min:
      return both(ofRight(0), ofRight(1));
    case ExprOp::Select:
      return either(both(where(right.operands[0], true), ofRight(1)),
                    both(where(right.operands[0], false), ofRight(2)));
    default:
      break;
    }
    std::vector<PositionSum> fits;
    const auto from = sumOf(a, fits), to = from ? sumOf(b, fits) : std::nullopt;
    if (!to)
      return everything();
    return whereNotNegative(plus(sum(*to, negated(*from)), -least), std::move(fits));
  }

  /// Where -a + least <= b can hold: of the least i32, whose negative is none, nothing is said.
  Region compareNegated(ExprId a, ExprId b, int least) {
    std::vector<PositionSum> fits;
    const auto from = sumOf(a, fits), to = from ? sumOf(b, fits) : std::nullopt;
    if (!to)
      return everything();
    fits.push_back(negated(*from));
    return whereNotNegative(plus(sum(*to, *from), -least), std::move(fits));
  }

  /// Where a sum can be at least 0.
  Region whereNotNegative(const PositionSum &value, std::vector<PositionSum> fits) {
    Interval interval;
    if (value.isOfParamsAlone()) {
      interval.conditions.push_back({value, std::move(fits)});
      return {interval};
    }
    PositionSum others = value; // than kv_pos
    others.kvPos = 0;
    const auto isOfKvPos = [](const PositionSum::Rounded &part) { return part.isOfKvPos; };
    const auto part = std::find_if(others.rounded.begin(), others.rounded.end(), isOfKvPos);
    if (part != others.rounded.end()) {
      const PositionSum::Rounded rounded = std::move(*part);
      others.rounded.erase(part);
      // Of x = kv_pos + c from 0 on: its multiple is at most x, and more than x - step.
      if (value.kvPos != 0 || !rounded.rest.isConstant() || rounded.rest.constant < 0 ||
          std::any_of(others.rounded.begin(), others.rounded.end(), isOfKvPos))
        return everything();
      if (rounded.times == 1)
        return fromOn(plus(negated(others), -rounded.rest.constant), std::move(fits));
      if (rounded.times != -1)
        return everything();
      others.rest = others.rest + rounded.step;
      return upTo(plus(others, -rounded.rest.constant), std::move(fits));
    }
    if (value.kvPos == 1)
      return fromOn(negated(others), std::move(fits));
    if (value.kvPos == -1)
      return upTo(plus(others, 1), std::move(fits));
    return everything();
  }

  static Region fromOn(PositionSum at, std::vector<PositionSum> fits) {
    Interval interval;
    if (neverFalls(at))
      interval.from.push_back({std::move(at), std::move(fits)});
    return {interval};
  }
  static Region upTo(PositionSum at, std::vector<PositionSum> fits) {
    Interval interval;
    if (neverFalls(at))
      interval.until.push_back({std::move(at), std::move(fits)});
    return {interval};
  }

  /// With q_pos. Planners bound many queries by the first and the last of them.
  static bool neverFalls(const PositionSum &at) {
    return at.qPos >= 0 && at.rounded.size() <= 1 &&
           std::all_of(at.rounded.begin(), at.rounded.end(),
                       [](const PositionSum::Rounded &part) { return part.times == 1; });
  }

  /// An i32 as a sum, and all that is computed on the way; none: it is no sum. Then nothing more is asked:
  /// what operands share may be a tree's worth of them.
  std::optional<PositionSum> sumOf(ExprId id, std::vector<PositionSum> &fits, std::size_t depth = 0) {
    if (fits.size() >= kMostFits || depth > kMostFits) // all above it would have a fit each
      return std::nullopt;
    const Expr &expr = exprs_[id];
    PositionSum result;
    const auto of = [&](int i) { return sumOf(expr.operands[static_cast<std::size_t>(i)], fits, depth + 1); };
    switch (expr.op) {
    case ExprOp::Constant:
      result.rest.constant = static_cast<std::int64_t>(expr.value);
      return result;
    case ExprOp::Param:
    case ExprOp::ParamElement: // those of a run's tokens and queries change from run to run
      if (params_[static_cast<std::size_t>(expr.param)].isSizedByRun())
        return std::nullopt;
      result.rest.terms = {{expr.param, 1}};
      return result;
    case ExprOp::Builtin:
      if (expr.builtin == Builtin::KvPos)
        result.kvPos = 1;
      else if (expr.builtin == Builtin::QPos)
        result.qPos = 1;
      else
        return std::nullopt;
      return result;
    case ExprOp::Neg: {
      const auto a = of(0);
      if (!a)
        return std::nullopt;
      result = negated(*a);
      break;
    }
    case ExprOp::Add:
    case ExprOp::Sub: {
      const auto a = of(0), b = a ? of(1) : std::nullopt;
      if (!b)
        return std::nullopt;
      result = sum(*a, expr.op == ExprOp::Add ? *b : negated(*b));
      break;
    }
    case ExprOp::Mul: {
      auto a = of(0), b = a ? of(1) : std::nullopt;
      if (!b)
        return std::nullopt;
      if (a->isOfParamsAlone() && a->rest.isConstant())
        std::swap(a, b);
      if (!b->isOfParamsAlone() || !b->rest.isConstant() || !a->rounded.empty() || isHuge(*a))
        return std::nullopt;
      const std::int64_t times = b->rest.constant;
      result.kvPos = a->kvPos * times;
      result.qPos = a->qPos * times;
      result.rest = a->rest * times;
      break;
    }
    case ExprOp::Rem: { // what rounding takes away
      const auto a = of(0), b = a ? of(1) : std::nullopt;
      if (!b || !b->isOfParamsAlone() || !a->rounded.empty() || a->kvPos + a->qPos != 1 ||
          a->kvPos * a->qPos != 0)
        return std::nullopt;
      result = *a;
      result.rounded.push_back({a->kvPos == 1, a->rest, b->rest, -1});
      break;
    }
    default:
      return std::nullopt;
    }
    if (isHuge(result))
      return std::nullopt;
    fits.push_back(result);
    return result;
  }

  /// So large that sums of products with i32 might not fit 64 bits.
  static bool isHuge(const PositionSum &value) {
    const auto is = [](std::int64_t number, int bits) {
      return (number < 0 ? -number : number) >> bits != 0;
    };
    return is(value.kvPos, 20) || is(value.qPos, 20) || is(value.rest.constant, 32) ||
           value.rounded.size() > 2 ||
           std::any_of(value.rest.terms.begin(), value.rest.terms.end(),
                       [&](const ParamSum::Term &term) { return is(term.times, 20); });
  }

  static constexpr std::size_t kMostFits = 32;
  /// Specs may be deeper, and the stack of who compiles one small.
  static constexpr int kMostDepth = 256;

  const std::vector<Expr> &exprs_;
  const std::vector<Param> &params_;
  std::map<std::pair<ExprId, bool>, Region> regions_;
  int comparisons_ = 0, depth_ = 0;
};

} // namespace

ParamSum operator+(const ParamSum &a, const ParamSum &b) {
  std::map<int, std::int64_t> terms;
  for (const ParamSum *part : {&a, &b})
    for (const ParamSum::Term &term : part->terms)
      terms[term.param] += term.times;
  ParamSum result{a.constant + b.constant, {}};
  for (const auto &[param, times] : terms)
    if (times != 0)
      result.terms.push_back({param, times});
  return result;
}

ParamSum operator*(const ParamSum &a, std::int64_t times) {
  ParamSum result{a.constant * times, {}};
  for (const ParamSum::Term &term : a.terms)
    if (times != 0)
      result.terms.push_back({term.param, term.times * times});
  return result;
}

VisibleBounds visibleBounds(const Variant &variant) {
  if (!variant.mask)
    return VisibleBounds::everything(variant.bound);
  return {Derivation(variant).where(*variant.mask, true), variant.bound};
}

} // namespace deft::spec
