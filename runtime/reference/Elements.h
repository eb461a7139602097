#pragma once

#include "runtime/reference/Evaluate.h"

#include <vector>

/// What the hooks `query` and `output` make of rows, element by element. The arithmetic is exact or f32,
/// never of 16 bits: an angle of that would be no angle.
namespace deft::reference {

class Elements {
public:
  Elements(const spec::Variant &variant, const exec::Inputs &inputs, Precision precision)
      : variant_(variant),
        evaluate_(variant, inputs, precision == Precision::Exact ? precision : Precision::Single) {}

  /// A row of q as q.k takes it, rounded to q's dtype; without a hook, as it is.
  std::vector<double> query(std::vector<double> row, Site site);
  /// Element `dim` of a normalised row as it is written, but for its rounding.
  double output(double x, int dim, Site site);
  /// A normalised row likewise, and what roundings that move `row` by `noise` of its norm move that by,
  /// relative to its own: `noise` anew.
  std::vector<double> output(const std::vector<double> &row, const Site &site, double &noise);

private:
  const spec::Variant &variant_;
  Evaluator evaluate_;
};

} // namespace deft::reference
