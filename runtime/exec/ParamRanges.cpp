#include "runtime/exec/ParamRanges.h"

#include <algorithm>

namespace deft::exec {

plan::ParamRanges rangesOf(const spec::Variant &variant, const std::vector<ParamValue> &values) {
  plan::ParamRanges ranges(variant.params.size());
  for (std::size_t i = 0; i < ranges.size() && i < values.size(); ++i)
    if (const std::vector<std::int32_t> &all = values[i].i32;
        !all.empty() && !variant.params[i].isSizedByRun()) { // plans take no bound from it
      const auto [least, most] = std::minmax_element(all.begin(), all.end());
      ranges[i] = plan::ParamRange{*least, *most};
    }
  return ranges;
}

plan::Reach reachOf(const spec::Variant &variant, const std::vector<ParamValue> &values) {
  return plan::Reach::of(spec::visibleBounds(variant), rangesOf(variant, values));
}

} // namespace deft::exec
