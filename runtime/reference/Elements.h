#pragma once

#include "runtime/reference/Evaluate.h"

#include <vector>

/// What the hooks `query`, `key` and `output` make of rows, element by element. The arithmetic is exact or
/// f32, never of 16 bits: an angle of that would be no angle.
namespace deft::reference {

/// An element of q or of K that lies so near the middle of two numbers of q's dtype that f32 arithmetic may
/// give the other.
struct EitherWay {
  std::size_t dim;
  double other;
};

class Elements {
public:
  Elements(const spec::Variant &variant, const exec::Inputs &inputs, Precision precision)
      : variant_(variant),
        evaluate_(variant, inputs, precision == Precision::Exact ? precision : Precision::Single),
        single_(variant, inputs, Precision::Single) {}

  /// A row of q as q.k takes it, rounded to q's dtype, and as bytes where products are of these; without a
  /// hook, as it is. `eitherWay` gets, where it is wanted, the elements that might be others.
  std::vector<double> query(std::vector<double> row, Site site, std::vector<EitherWay> *eitherWay = nullptr);
  /// A token's row of K likewise; `site` is that of the token.
  std::vector<double> key(std::vector<double> row, Site site, std::vector<EitherWay> *eitherWay = nullptr);
  /// Element `dim` of a normalised row as written, before its rounding.
  double output(double x, int dim, Site site);
  /// A normalised row likewise, and what roundings that move `row` by `noise` of its norm move that by,
  /// relative to its own: `noise` anew.
  std::vector<double> output(const std::vector<double> &row, const Site &site, double &noise);

private:
  std::vector<double> make(spec::ExprId hook, const std::vector<double> &row, Site site,
                           std::vector<EitherWay> *eitherWay);

  const spec::Variant &variant_;
  Evaluator evaluate_, single_;
};

} // namespace deft::reference
