#pragma once

#include "compiler/spec/Variant.h"

#include <vector>

/// How far the unavoidable roundings of a kernel may move a row. A kernel rounds weights to the dtype to
/// multiply them with V; it may store a partial in 16 bits, which the merge reads; and it writes the output.
/// Everything else is f32, whose roundings are smaller by 2^-13 or more.
namespace deft::reference {

/// The most that rounding x changes: relative * |x| + absolute. The latter is half the least subnormal.
struct Rounding {
  double relative, absolute;
};
Rounding roundingOf(spec::DType dtype);

/// For one element: the roundings of its weight, of a partial that contains it, and of the output.
struct Roundings {
  Rounding weight, partial, output;

  static Roundings of(const spec::Variant &variant);
  double relative() const { return weight.relative + partial.relative + output.relative; }
};

/// The noise of one row, computed from its exact weights w_t and values v_t:
///
/// - Weights: each w_t v_t moves by at most a_t = (u w_t + e) |v_t|, with u and e of the dtype. (e bounds the
/// weight's own rounding and its share after normalisation, since weights add up to at least 1 before it.)
/// The roundings are independent, so their squares add up: a = sqrt(sum a_t^2).
/// - Partials: each is rounded once, by u of the partial, and their weighted sum is the output. By the same
/// argument this is u sqrt(sum (w_t |v_t|)^2). If many values point in the same direction, it is at most
/// about u of the largest sum over a beginning of the path. b is the larger of the two.
/// - The output: each element moves by at most u |o_d| + e, so the row by c = u |o| + e sqrt(head_dim).
///
/// The three are independent as well: noise = sqrt(a^2 + b^2 + c^2) / |o|. A rounding is uniformly
/// distributed within its bound, so its mean square is a third of the bound's square. So the noise is sqrt(3)
/// times the expected root mean square. For a single token, where nothing averages out, it is the bound
/// itself.
class RowNoise {
public:
  RowNoise(const spec::Variant &variant);

  /// Adds a token, in path order; `out` is the row's sum including it. `scoreNoise`: the possible error of
  /// its score, beyond that of f32.
  void add(double weight, double valueNorm, const std::vector<double> &out, double scoreNoise = 0);
  /// The noise relative to the norm of the row's output; 0 if that is 0.
  double of(const std::vector<double> &out) const;

private:
  Roundings roundings_;
  double weights_ = 0, products_ = 0; ///< sums of squares: a_t, and w_t |v_t|
  double largest_ = 0;                ///< squared norm of the largest sum over a beginning of the path
  int tokens_ = 0;
};

} // namespace deft::reference
