#pragma once

#include <vector>

/// Products of 8 bits (LANGUAGE.md, rule A12): the values that q and the weights have in them.
namespace deft::reference {

/// The power of two by which the elements of a row of q are divided.
double byteScaleOf(const std::vector<double> &row);
/// The value of an element in a row with this scale.
double asByte(double element, double scale);
/// The value of a weight, given relative to the row's largest, which is 1.
double asByteWeight(double weight);

/// The error that q.k of such numbers may have. The matrix units of sm_90 keep 13 bits below the leading bit
/// of the largest summand and cut off the rest. Returns four times the expected root mean square.
double byteSumNoise(const std::vector<double> &q, const float *k);

} // namespace deft::reference
