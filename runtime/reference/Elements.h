#pragma once

#include "runtime/reference/Evaluate.h"

#include <vector>

/// Applies the hooks `query`, `key` and `output` to rows, element by element. The arithmetic is exact or f32,
/// never 16-bit: 16 bits are too few for an angle.
namespace deft::reference {

/// An element of q or of K that lies so close to the middle between two numbers of q's dtype that f32
/// arithmetic may round to the other one.
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

  /// The row of q for q.k: rounded to q's dtype, and to 8 bits for products of 8 bits; without a hook,
  /// unchanged. `eitherWay`, if not null, receives the elements that might round differently.
  std::vector<double> query(std::vector<double> row, Site site, std::vector<EitherWay> *eitherWay = nullptr);
  /// The same for a token's row of K; `site` is the token's.
  std::vector<double> key(std::vector<double> row, Site site, std::vector<EitherWay> *eitherWay = nullptr);
  /// Element `dim` of a normalised row, before its rounding.
  double output(double x, int dim, Site site);
  /// The same for a normalised row. `noise` is the movement of `row` by roundings, relative to its norm; it
  /// becomes that of the result.
  std::vector<double> output(const std::vector<double> &row, const Site &site, double &noise);

private:
  std::vector<double> make(spec::ExprId hook, const std::vector<double> &row, Site site,
                           std::vector<EitherWay> *eitherWay);

  const spec::Variant &variant_;
  Evaluator evaluate_, single_;
};

} // namespace deft::reference
