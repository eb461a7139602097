#include "PlainAttention.h"

#include <algorithm>
#include <cmath>
#include <limits>

PlainRow plainAttention(const Shape &shape, int head, const std::uint16_t *q,
                        const std::vector<const TokenVectors *> &keys,
                        const std::vector<const TokenVectors *> &values) {
  const int first = head / (shape.queryHeads / shape.kvHeads) * shape.headDim;
  std::vector<double> scores;
  double largest = -std::numeric_limits<double>::infinity();
  for (const TokenVectors *key : keys) {
    double sum = 0;
    for (int d = 0; d < shape.headDim; ++d)
      sum += static_cast<double>(fromBf16(q[d])) * fromBf16((*key)[first + d]);
    scores.push_back(sum * shape.scale);
    largest = std::max(largest, scores.back());
  }
  PlainRow row{std::vector<double>(shape.headDim), 0};
  double weights = 0;
  for (std::size_t t = 0; t < scores.size(); ++t) {
    const double weight = std::exp(scores[t] - largest);
    weights += weight;
    for (int d = 0; d < shape.headDim; ++d)
      row.out[d] += weight * fromBf16((*values[t])[first + d]);
  }
  for (double &value : row.out)
    value /= weights;
  row.lse = largest + std::log(weights);
  return row;
}

double errorOf(const PlainRow &plain, const std::uint16_t *out, float lse) {
  double difference = 0, norm = 0;
  for (std::size_t d = 0; d < plain.out.size(); ++d) {
    const double off = fromBf16(out[d]) - plain.out[d];
    difference += off * off;
    norm += plain.out[d] * plain.out[d];
  }
  // Written so that a NaN is not smaller.
  if (const double off = std::abs(lse - plain.lse); !(off <= 1e-3))
    return std::numeric_limits<double>::infinity();
  return std::sqrt(difference / norm);
}
