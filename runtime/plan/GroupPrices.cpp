#include "runtime/plan/GroupPrices.h"

#include <algorithm>

namespace deft::plan {

void GroupPrices::set(const CostModel &model, int chunkTokens) {
  width_ = model.queriesPerTile();
  inverseWidth_ = 1.0F / static_cast<float>(width_);
  item_ = static_cast<float>(model.itemUs());
  again_ = static_cast<float>(model.againUs());
  partial_ = static_cast<float>(model.partialUs());
  inverseChunk_ = chunkTokens > 0 ? 1.0F / static_cast<float>(chunkTokens) : 0;
  float shortTokens = partial_ / again_;
  if (chunkTokens > 0)
    shortTokens = std::min(shortTokens, static_cast<float>(chunkTokens));
  // Joining may save almost a whole step of each row tile, but so rarely that the edges which this bound
  // would leave open are not worth a decision.
  constexpr float kMostOfStep = 0.35F;
  bounds_.assign(static_cast<std::size_t>(width_) + 1, {});
  widths_.assign(static_cast<std::size_t>(width_) + 1, {});
  fewer_.assign(static_cast<std::size_t>(width_) + 1, 0);
  readers_.assign(static_cast<std::size_t>(width_) + 1, {});
  int cheaper = 0; // the most queries with a cheaper step
  for (int queries = 1; queries <= width_; ++queries) {
    const auto step = static_cast<float>(model.tokenStep(queries));
    const auto stepUs = static_cast<float>(model.stepUs(queries));
    const Width width{stepUs, 1 / step, (step - 0.5F) / step, 1};
    widths_[static_cast<std::size_t>(queries)] = width;
    readers_[static_cast<std::size_t>(queries)] = {
        0, stepUs, width.inverseStep, width.slack, 1, partial_ * static_cast<float>(queries)};
    bounds_[static_cast<std::size_t>(queries)] = {stepUs / step + again_, kMostOfStep * stepUs, 1};
    shortTokens = std::min(shortTokens, step);
    if (stepUs > widths_[static_cast<std::size_t>(queries) - 1].stepUs)
      cheaper = queries - 1;
    fewer_[static_cast<std::size_t>(queries)] = queries - cheaper;
  }
  fewer_[0] = fewer_.back();
  wide_ = widths_.back();
  shortTokens_ = static_cast<int>(shortTokens);
}

} // namespace deft::plan
