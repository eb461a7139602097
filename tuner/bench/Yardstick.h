#pragma once

#include "tuner/bench/CeilingProbe.h"
#include "tuner/bench/KernelRows.h"

#include <optional>
#include <string_view>

namespace deft::bench {

/// Measurements of the machine that the rows' recorded times come from.
struct RecordedCeilings {
  std::string_view model;    ///< part of the device's name
  MeasuredCeilings ceilings; ///< `units` 0: not recorded
  MatrixRate product;        ///< of 8192^3, by a library
};
/// For the card on which the rows' peers were measured; no other card has such times.
const RecordedCeilings &recordedCard();
/// Null for any other model: recorded times do not apply to it.
const RecordedCeilings *recordedCeilings(std::string_view deviceName);

/// The reference for a row: the ceilings of this machine, and the ratio of its times to recorded ones of the
/// same card. A time of this machine is a recorded time multiplied by a scale; reads and products have
/// different scales.
class Yardstick {
public:
  /// Without measured ceilings it uses the recorded ones, and both scales are 1.
  Yardstick(std::optional<MeasuredCeilings> measured, const RecordedCeilings *recorded)
      : measured_(std::move(measured)), recorded_(recorded) {}

  const std::optional<MeasuredCeilings> &measured() const { return measured_; }
  const RecordedCeilings *recorded() const { return recorded_; }

  /// Measured over recorded time of cold reads: the geometric mean over sizes and kinds of reads; 1 if either
  /// is unknown.
  double readScale() const;
  /// Measured over recorded time of products, by the rates of the tensor cores; 1 if either is
  /// unknown.
  double productScale(spec::DType dtype) const;

  /// The time of a cold read: `measuredUs` if this size was measured, otherwise by the recorded rate.
  double readUs(double bytes, double measuredUs) const;
  /// TFLOP/s of a large matrix product, comparable between cards: the rate of the tensor cores just measured,
  /// times the fraction of it that a library's product reached on the recorded card. Without a measurement,
  /// the value recorded for this card, or 0.
  double productTFlops(spec::DType dtype) const;
  /// One launch and `flops` at that rate; 0 if it is unknown.
  double productUs(double flops, spec::DType dtype) const;

private:
  std::optional<MeasuredCeilings> measured_;
  const RecordedCeilings *recorded_;
};

} // namespace deft::bench
