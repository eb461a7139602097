#include "runtime/api/Overlap.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace deft::api {

namespace {

/// Rows of bytes that lie side by side, at distances. There is one at least.
struct Rows {
  struct Axis {
    std::int64_t bytes = 0; ///< from one to the next
    std::int64_t count = 0;
  };
  std::int64_t rowBytes = 0;
  std::vector<Axis> axes;

  explicit Rows(const Extent &extent) : rowBytes(extent.elementBytes) {
    for (std::size_t i = extent.shape.size(); i-- > 0;) {
      const std::int64_t bytes = extent.strides[i] * extent.elementBytes;
      if (extent.shape[i] == 1 || bytes == 0) // an element that is there again and again is there once
        continue;
      if (axes.empty() && bytes == rowBytes)
        rowBytes *= extent.shape[i];
      else
        axes.push_back({bytes, extent.shape[i]});
    }
  }
};

/// From the first byte past the last one; 0 where there are none, or more than any memory has.
std::int64_t span(const Extent &extent) {
  constexpr std::int64_t kMost = std::int64_t{1} << 56;
  std::int64_t bytes = extent.elementBytes;
  for (std::size_t i = 0; i < extent.shape.size(); ++i) {
    std::int64_t more = 0;
    if (extent.shape[i] == 0 || __builtin_mul_overflow(extent.shape[i] - 1, extent.strides[i], &more) ||
        more > kMost / extent.elementBytes - bytes)
      return 0;
    bytes += more * extent.elementBytes;
  }
  return bytes;
}

/// Steps along the axes of two tensors that bring a row of one into a row of the other.
class Search {
public:
  Search(const Rows &a, const Rows &b) {
    for (const Rows::Axis &axis : a.axes)
      add(axis.bytes, 0, axis.count - 1);
    for (const Rows::Axis &axis : b.axes)
      add(axis.bytes, 1 - axis.count, 0);
    std::sort(steps_.begin(), steps_.end(), [](const Step &x, const Step &y) { return x.bytes > y.bytes; });
    reaches_.resize(steps_.size() + 1);
    for (std::size_t i = steps_.size(); i-- > 0;)
      reaches_[i] = {reaches_[i + 1].least + steps_[i].least * steps_[i].bytes,
                     reaches_[i + 1].most + steps_[i].most * steps_[i].bytes};
  }

  /// Whether some steps from the `index`th on, taken together, go from `least` to `most` bytes.
  bool reaches(std::int64_t least, std::int64_t most, std::size_t index = 0) {
    if (most < reaches_[index].least || least > reaches_[index].most)
      return false;
    if (index == steps_.size() || --triesLeft_ < 0)
      return true;
    const Step &step = steps_[index];
    const Reach &rest = reaches_[index + 1];
    const std::int64_t first = std::max(step.least, dividedUp(least - rest.most, step.bytes));
    const std::int64_t last = std::min(step.most, dividedDown(most - rest.least, step.bytes));
    for (std::int64_t times = first; times <= last; ++times)
      if (reaches(least - times * step.bytes, most - times * step.bytes, index + 1))
        return true;
    return false;
  }

private:
  struct Step {
    std::int64_t bytes = 0, least = 0, most = 0; ///< how often it may be taken
  };
  struct Reach {
    std::int64_t least = 0, most = 0;
  };

  void add(std::int64_t bytes, std::int64_t least, std::int64_t most) {
    const auto same =
        std::find_if(steps_.begin(), steps_.end(), [&](const Step &step) { return step.bytes == bytes; });
    if (same == steps_.end()) {
      steps_.push_back({bytes, least, most});
      return;
    }
    same->least += least;
    same->most += most;
  }

  static std::int64_t dividedDown(std::int64_t value, std::int64_t by) {
    return value / by - (value % by < 0 ? 1 : 0);
  }
  static std::int64_t dividedUp(std::int64_t value, std::int64_t by) { return -dividedDown(-value, by); }

  std::vector<Step> steps_; ///< the longest first: what comes behind one mostly goes less far than it
  std::vector<Reach> reaches_;
  int triesLeft_ = 1 << 14;
};

} // namespace

bool overlap(const Extent &a, const Extent &b) {
  const auto from = static_cast<std::int64_t>(b.begin - a.begin); // a's first byte to b's
  const std::int64_t spanOfA = span(a), spanOfB = span(b);
  if (a.begin == 0 || b.begin == 0 || spanOfA == 0 || spanOfB == 0 || from >= spanOfA || -from >= spanOfB)
    return false;
  const Rows rowsOfA(a), rowsOfB(b);
  return Search(rowsOfA, rowsOfB).reaches(from - (rowsOfA.rowBytes - 1), from + (rowsOfB.rowBytes - 1));
}

std::optional<EntryOverlap> overlapWithin(const Extent &extent) {
  if (span(extent) == 0)
    return std::nullopt;
  Dims<std::size_t> order; // by falling stride
  for (std::size_t i = 0; i < extent.shape.size(); ++i)
    order.push(i);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(-extent.strides[a], a) < std::pair(-extent.strides[b], b);
  });
  // Mostly an entry ends before the next one begins, along every dimension.
  bool areApart = true;
  std::int64_t reach = 0;
  for (std::size_t i = order.size(); i-- > 0;) {
    const std::int64_t size = extent.shape[order[i]], stride = extent.strides[order[i]];
    areApart &= size == 1 || stride == 0 || stride > reach;
    reach += (size - 1) * stride;
  }
  if (areApart)
    return std::nullopt;
  // Two elements differ along one dimension first. Those before it move both alike, so they do not matter.
  Extent entry = extent;
  entry.begin = 1; // anywhere
  for (const std::size_t dimension : order) {
    Extent others = entry;
    others.begin += static_cast<std::uintptr_t>(extent.strides[dimension] * extent.elementBytes);
    --others.shape[dimension];
    entry.shape[dimension] = 1;
    if (extent.strides[dimension] > 0 && overlap(entry, others))
      return EntryOverlap{dimension, span(entry) / extent.elementBytes};
  }
  return std::nullopt;
}

} // namespace deft::api
