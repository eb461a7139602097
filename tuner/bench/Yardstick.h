#pragma once

#include "tuner/bench/CeilingProbe.h"
#include "tuner/bench/KernelRows.h"

#include <optional>
#include <string_view>

namespace deft::bench {

/// What was measured on the machine that the rows' recorded times come from.
struct RecordedCeilings {
  std::string_view model;    ///< part of the device's name
  MeasuredCeilings ceilings; ///< `units` 0: not recorded
  MatrixRate product;        ///< of 8192^3, by a library
};
/// Of the card that the rows' peers were measured on, the only one that has any.
const RecordedCeilings &recordedCard();
/// Null for any other model: recorded times say nothing of it.
const RecordedCeilings *recordedCeilings(std::string_view deviceName);

/// What a row is held against: the ceilings of this machine, and how its times compare with recorded ones of
/// the same card. Times of this machine are recorded times multiplied by a scale, one for reads and one for
/// products.
class Yardstick {
public:
  /// Without measured ceilings the recorded ones count, and both scales are 1.
  Yardstick(std::optional<MeasuredCeilings> measured, const RecordedCeilings *recorded)
      : measured_(std::move(measured)), recorded_(recorded) {}

  const std::optional<MeasuredCeilings> &measured() const { return measured_; }
  const RecordedCeilings *recorded() const { return recorded_; }

  /// Measured over recorded time of cold reads, the geometric mean over sizes and ways to read; 1 when either
  /// is not known.
  double readScale() const;
  /// Measured over recorded time of products, by the rates of the matrix units alone; 1 when either is not
  /// known.
  double productScale(spec::DType dtype) const;

  /// Reading so much, cold: `measuredUs` where it was measured at this very size, else by the recorded rate.
  double readUs(double bytes, double measuredUs) const;
  /// TFLOP/s of a large matrix product, the same kind of figure on every card: what its matrix units alone
  /// were measured to do just now, times the share of that which a library's product reached on the recorded
  /// card. Without a measurement, what was recorded of this card; else 0.
  double productTFlops(spec::DType dtype) const;
  /// One launch and so many flops at that rate; 0 when nothing is known.
  double productUs(double flops, spec::DType dtype) const;

private:
  std::optional<MeasuredCeilings> measured_;
  const RecordedCeilings *recorded_;
};

} // namespace deft::bench
