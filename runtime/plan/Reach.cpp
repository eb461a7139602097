#include "runtime/plan/Reach.h"

#include <algorithm>
#include <utility>

namespace deft::plan {

using spec::ParamSum;
using spec::PositionSum;
using spec::VisibleBounds;

namespace {

constexpr std::int64_t kMostPosition = (std::int64_t{1} << 30) - 1; ///< rule V2
constexpr std::int64_t kNoQPos = -1;                                ///< q_pos of an empty path

ParamRange operator+(const ParamRange &a, const ParamRange &b) {
  return {a.least + b.least, a.most + b.most};
}
ParamRange operator*(const ParamRange &range, std::int64_t factor) {
  const ParamRange product{range.least * factor, range.most * factor};
  return factor < 0 ? ParamRange{product.most, product.least} : product;
}
bool fitsI32(const ParamRange &range) {
  return range.least >= std::numeric_limits<std::int32_t>::min() &&
         range.most <= std::numeric_limits<std::int32_t>::max();
}

} // namespace

/// Replaces parameters in bounds by their values.
class Reach::Resolver {
public:
  explicit Resolver(const ParamRanges &params) : params_(params) {}

  std::optional<ParamRange> rangeOf(const ParamSum &sum) const {
    ParamRange range{sum.constant, sum.constant};
    for (const ParamSum::Term &term : sum.terms) {
      const auto &value = params_[static_cast<std::size_t>(term.param)];
      if (!value)
        return std::nullopt;
      range = range + *value * term.times;
    }
    return range;
  }

  /// The step of a rounding by `%`: a number from 1 on, equal for all heads; none otherwise.
  std::optional<std::int64_t> stepOf(const PositionSum::Rounded &part) const {
    const auto step = rangeOf(part.step);
    if (!step || step->least != step->most || step->least < 1)
      return std::nullopt;
    return step->least;
  }

  bool fits(const PositionSum &sum) const {
    auto range = rangeOf(sum.rest);
    if (!range)
      return false;
    const ParamRange kvPos{0, kMostPosition}, qPos{kNoQPos, kMostPosition};
    range = *range + kvPos * sum.kvPos + qPos * sum.qPos;
    for (const PositionSum::Rounded &part : sum.rounded) {
      auto inner = rangeOf(part.rest);
      if (!inner || !stepOf(part))
        return false;
      inner = *inner + (part.isOfKvPos ? kvPos : qPos);
      const ParamRange rounded{std::min<std::int64_t>(inner->least, 0),
                               std::max<std::int64_t>(inner->most, 0)};
      range = *range + rounded * part.times;
    }
    return fitsI32(*range);
  }
  bool isSure(const VisibleBounds::Bound &bound) const {
    return std::all_of(bound.fits.begin(), bound.fits.end(),
                       [&](const PositionSum &sum) { return fits(sum); });
  }

  /// The bound for the lowest, or the highest, values of its parameters.
  std::optional<Edge> edgeOf(const VisibleBounds::Bound &bound, bool isStart) const {
    const auto rest = rangeOf(bound.at.rest);
    if (!rest || !isSure(bound))
      return std::nullopt;
    Edge edge{bound.at.qPos, isStart ? rest->least : rest->most, 0, 0, 1};
    for (const PositionSum::Rounded &part : bound.at.rounded) {
      const auto inner = rangeOf(part.rest);
      const auto step = stepOf(part);
      if (!inner || !step)
        return std::nullopt;
      edge.roundedPerQPos = 1;
      edge.roundedOffset = isStart ? inner->least : inner->most;
      edge.step = *step;
    }
    return edge;
  }

  /// Whether a condition may hold.
  bool mayHold(const VisibleBounds::Bound &condition) const {
    const auto range = rangeOf(condition.at.rest);
    return !range || !isSure(condition) || range->most >= 0;
  }

private:
  const ParamRanges &params_;
};

ParamRanges defaultRanges(const spec::Variant &variant) {
  ParamRanges ranges;
  for (const spec::Param &param : variant.params)
    if (param.defaultValue && param.type == spec::ScalarType::I32)
      ranges.push_back(ParamRange{static_cast<std::int64_t>(*param.defaultValue),
                                  static_cast<std::int64_t>(*param.defaultValue)});
    else
      ranges.emplace_back();
  return ranges;
}

Reach Reach::of(const VisibleBounds &bounds, const ParamRanges &params) {
  const Resolver resolver(params);
  Reach reach;
  reach.isAll_ = false;
  reach.seesPath_ = bounds.bound == spec::MaskBound::Path;
  for (const VisibleBounds::Interval &interval : bounds.intervals) {
    if (!std::all_of(interval.conditions.begin(), interval.conditions.end(),
                     [&](const VisibleBounds::Bound &condition) { return resolver.mayHold(condition); }))
      continue;
    Interval own;
    for (const VisibleBounds::Bound &bound : interval.from) {
      const auto edge = resolver.edgeOf(bound, /*isStart=*/true);
      if (edge && (edge->isRising() || edge->offset > 0))
        own.from.push_back(*edge);
    }
    for (const VisibleBounds::Bound &bound : interval.until) {
      const auto edge = resolver.edgeOf(bound, /*isStart=*/false);
      if (edge && (reach.seesPath_ || !edge->isBehindAll()))
        own.until.push_back(*edge);
    }
    if (own.from.empty() && own.until.empty())
      return reach.withoutMask();
    for (const Edge &edge : own.from)
      reach.hasRisingStart_ |= edge.isRising();
    for (const Edge &edge : own.until)
      reach.hasRisingEnd_ |= edge.isRising() && !edge.isBehindAll();
    reach.intervals_.push_back(std::move(own));
  }
  reach.findGaps();
  return reach;
}

/// Rising ends do not matter: plans do not follow queries with them (VisibleTree).
void Reach::findGaps() {
  for (const Interval &one : intervals_) {
    std::int64_t end = kNowhere;
    for (const Edge &edge : one.until)
      if (!edge.isRising())
        end = std::min(end, edge.at(0));
    for (const Interval &other : intervals_) {
      const auto isBehind = [&](std::int64_t qPos) { return startOf(other, static_cast<int>(qPos)) > end; };
      if (isBehind(0) || !isBehind(kMostPosition))
        continue;
      std::int64_t before = 0, behind = kMostPosition; // starts never fall
      while (behind - before > 1) {
        const std::int64_t middle = before + (behind - before) / 2;
        (isBehind(middle) ? behind : before) = middle;
      }
      gapsFrom_.push_back(static_cast<int>(behind));
    }
  }
}

std::int64_t Reach::startOf(const Interval &interval, int qPos) {
  std::int64_t start = 0;
  for (const Edge &edge : interval.from)
    start = std::max(start, edge.at(qPos));
  return start;
}

std::int64_t Reach::endOf(const Interval &interval, int qPos) const {
  std::int64_t end = endOfBound(qPos);
  for (const Edge &edge : interval.until)
    end = std::min(end, edge.at(qPos));
  return end;
}

int Reach::lowest(int qPos) const {
  std::int64_t least = isAll_ ? 0 : kNowhere;
  for (const Interval &interval : intervals_)
    least = std::min(least, startOf(interval, qPos));
  return static_cast<int>(least);
}

Reach Reach::widened(int below, int above) const {
  Reach wide = *this;
  for (Interval &interval : wide.intervals_) {
    for (Edge &edge : interval.from)
      edge = edge.moved(-std::int64_t{below});
    for (Edge &edge : interval.until)
      edge = edge.moved(above);
  }
  return wide;
}

int Reach::firstFrom(std::span<const int> qPos, int growth, int position) const {
  if (isAll_)
    return std::any_of(qPos.begin(), qPos.end(), [&](int own) { return position < endOfBound(own + growth); })
               ? position
               : kNowhere;
  std::int64_t first = kNowhere;
  for (const Interval &interval : intervals_) {
    std::int64_t firstHere = kNowhere;
    int least = kNowhere; // over the queries that see something of it; later ones see nothing earlier
    for (const int own : qPos) {
      if (own >= least)
        continue;
      const std::int64_t start = std::max<std::int64_t>(startOf(interval, own + growth), position);
      if (start < endOf(interval, own + growth)) {
        firstHere = start;
        least = own;
      }
    }
    first = std::min(first, firstHere);
  }
  return static_cast<int>(first);
}

int Reach::endOfSeen(int qPos) const {
  if (isAll_)
    return static_cast<int>(endOfBound(qPos));
  std::int64_t last = 0;
  for (const Interval &interval : intervals_)
    if (const std::int64_t end = endOf(interval, qPos); startOf(interval, qPos) < end)
      last = std::max(last, end);
  return static_cast<int>(last);
}

void Reach::find(int first, int last, std::vector<Positions> &to) const {
  to.clear();
  if (isAll_) {
    if (const std::int64_t end = endOfBound(last); end > 0)
      to.push_back({0, static_cast<int>(end)});
    return;
  }
  for (const Interval &interval : intervals_)
    if (const std::int64_t start = startOf(interval, first), end = endOf(interval, last); start < end)
      to.push_back({static_cast<int>(start), static_cast<int>(end)});
  std::sort(to.begin(), to.end(), [](const Positions &a, const Positions &b) { return a.begin < b.begin; });
  std::size_t kept = 0;
  for (const Positions &stretch : to)
    if (kept > 0 && stretch.begin <= to[kept - 1].end)
      to[kept - 1].end = std::max(to[kept - 1].end, stretch.end);
    else
      to[kept++] = stretch;
  to.resize(kept);
}

} // namespace deft::plan
