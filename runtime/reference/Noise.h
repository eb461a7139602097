#pragma once

#include "compiler/spec/Variant.h"

#include <vector>

/// How far roundings that a kernel cannot do without may move a row. A kernel takes weights to the dtype, to
/// multiply them with V; it may leave a partial in 16 bits, which the merge reads again; and it writes the
/// output. All else is f32, whose roundings are 2^-13 of these and less.
namespace deft::reference {

/// What rounding x to a type may change: relative * |x| + absolute. The second is half the least subnormal.
struct Rounding {
  double relative, absolute;
};
Rounding roundingOf(spec::DType dtype);

/// Of one element: its weight, a partial that has it, and the output.
struct Roundings {
  Rounding weight, partial, output;

  static Roundings of(const spec::Variant &variant);
  double relative() const { return weight.relative + partial.relative + output.relative; }
};

/// The noise of one row, from its exact weights w_t and values v_t:
///
/// - Weights: each of w_t v_t moves by at most a_t = (u w_t + e) |v_t|, u and e those of the dtype. (e of the
///   weight itself, and of what the weights are of their sum, since weights come to at least 1 before they
///   are normalised.) The roundings are independent, so their squares add up: a = sqrt(sum a_t^2).
/// - Partials: each is rounded once, so what moves is u of the partials, whose weighted sum is the output. By
///   the same argument that is u sqrt(sum (w_t |v_t|)^2), and where many values point the same way, at most
///   about u of the largest sum that a beginning of the path comes to: b is the larger of both.
/// - The output: each element moves by at most u |o_d| + e, so the row by c = u |o| + e sqrt(head_dim).
///
/// The three are independent, too: noise = sqrt(a^2 + b^2 + c^2) / |o|. A rounding is as likely to be any
/// part of its bound, whose mean square is a third of the bound's; so the noise is sqrt(3) times the root
/// mean square of what is to be expected, and of one token, where nothing averages out, it is the bound
/// itself.
class RowNoise {
public:
  RowNoise(const spec::Variant &variant);

  /// A token, in the order of the path; `out` is the row's sum with it. `scoreNoise`: how far its score may
  /// be off, beyond what f32 is.
  void add(double weight, double valueNorm, const std::vector<double> &out, double scoreNoise = 0);
  /// Relative to the norm of the row's output; 0 where that is 0.
  double of(const std::vector<double> &out) const;

private:
  Roundings roundings_;
  double weights_ = 0, products_ = 0; ///< sums of squares: a_t, and w_t |v_t|
  double largest_ = 0;                ///< squared norm of the sum of a beginning
  int tokens_ = 0;
};

} // namespace deft::reference
