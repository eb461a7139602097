#pragma once

#include <vector>

/// Products of 8 bits (LANGUAGE.md, rule A12): what q and weights count as.
namespace deft::reference {

/// The power of two that the elements of a row of q are divided by.
double byteScaleOf(const std::vector<double> &row);
/// An element of a row with that scale.
double asByte(double element, double scale);
/// A weight relative to the row's largest, which is 1.
double asByteWeight(double weight);

/// How far q.k of such numbers may be off: the matrix units of sm_90 add with 13 bits behind the first one of
/// the largest summand, and cut the others off. Four times the root mean square of what is to be expected.
double byteSumNoise(const std::vector<double> &q, const float *k);

} // namespace deft::reference
