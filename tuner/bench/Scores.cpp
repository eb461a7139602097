#include "tuner/bench/Scores.h"

#include "tuner/bench/GeometricMean.h"

namespace deft::bench {

namespace {

class Collector {
public:
  /// Does nothing if either is unknown. Limit 0: none.
  void add(const std::string &name, double value, double reference, double limit) {
    if (value <= 0 || reference <= 0)
      return;
    const double ratio = value / reference;
    mean_.add(ratio);
    if (ratio > found_.worst) {
      found_.worst = ratio;
      found_.worstName = name;
    }
    if (limit > 0 && ratio > limit)
      found_.beyond.push_back(name);
  }

  Worst take() {
    found_.rows = mean_.count();
    found_.mean = mean_.value();
    return std::move(found_);
  }

private:
  GeometricMean mean_;
  Worst found_;
};

} // namespace

Summary summarize(std::span<const RowScore> rows) {
  Collector overFloor, overRecordedFloor, overLargeFloor, overPeer, overRawPeer, scattered, pages16, warm,
      overBest;
  for (const RowScore &row : rows) {
    overFloor.add(row.name, row.coldUs, row.floorUs, kFloorLimit);
    overRecordedFloor.add(row.name, row.coldUs, row.recordedFloorUs, kFloorLimit);
    if (row.floorUs > kLargeFloorUs)
      overLargeFloor.add(row.name, row.coldUs, row.floorUs, kLargeFloorLimit);
    overPeer.add(row.name, row.coldUs, row.peerUs, 1);
    overRawPeer.add(row.name, row.coldUs, row.rawPeerUs, 1);
    scattered.add(row.name, row.scatteredUs, row.coldUs, row.scatteredLimit);
    pages16.add(row.name, row.pages16Us, row.coldUs, kScatteredPagesLimit);
    warm.add(row.name, row.warmUs, row.coldUs, 0);
    overBest.add(row.name, row.coldUs, row.bestUs, kUntunedLimit);
  }
  return {overFloor.take(),   overRecordedFloor.take(), overLargeFloor.take(), overPeer.take(),
          overRawPeer.take(), scattered.take(),         pages16.take(),        warm.take(),
          overBest.take()};
}

} // namespace deft::bench
