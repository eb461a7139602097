#pragma once

#include <deft/deft.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace deft {

/// A decoder of beams without a tree: each beam has all its tokens by itself. It writes the tokens' K and V
/// to the cache of the beams under test, where these say, and computes the attention of each beam by what it
/// knows itself.
class PlainBeams {
public:
  static constexpr int kQueryHeads = 4, kKvHeads = 2, kHeadDim = 64;
  static constexpr double kScale = 0.25; ///< of the test package
  static constexpr int kRowOfQ = kQueryHeads * kHeadDim, kRowOfK = kKvHeads * kHeadDim;

  /// One beam, whose first tokens lie in the first slots.
  PlainBeams(std::mt19937 &random, int history, int slots)
      : k(static_cast<std::size_t>(slots * kRowOfK)), v(k.size()), beams_(1) {
    for (int token = 0; token < history; ++token)
      write(random, beams_[0], token);
  }

  /// Values that bf16 holds: multiples of 1/8 up to 1.
  static std::vector<std::uint16_t> drawn(std::mt19937 &random, int count) {
    std::vector<std::uint16_t> values(static_cast<std::size_t>(count));
    for (std::uint16_t &value : values)
      value = static_cast<std::uint16_t>(
          std::bit_cast<std::uint32_t>((static_cast<float>(random() % 17) - 8) / 8) >> 16);
    return values;
  }

  int count() const { return static_cast<int>(beams_.size()); }
  const std::vector<int> &tokens(std::size_t beam) const { return beams_[beam]; }

  void advance(std::mt19937 &random, const std::vector<int> &parents, std::span<const std::int64_t> slots) {
    std::vector<std::vector<int>> next;
    for (std::size_t i = 0; i < parents.size(); ++i) {
      next.push_back(beams_[static_cast<std::size_t>(parents[i])]);
      write(random, next.back(), slots[i]);
    }
    beams_.swap(next);
  }

  /// The first beam whose output differs from its attention, or -1.
  int firstWrong(const std::vector<std::uint16_t> &q, const std::vector<std::uint16_t> &out,
                 const std::vector<float> &lse) const {
    for (int beam = 0; beam < count(); ++beam)
      for (int head = 0; head < kQueryHeads; ++head)
        if (const int row = beam * kQueryHeads + head;
            !isRight(beam, head, &q[static_cast<std::size_t>(row * kHeadDim)],
                     &out[static_cast<std::size_t>(row * kHeadDim)], lse[static_cast<std::size_t>(row)]))
          return beam;
    return -1;
  }

  std::vector<std::uint16_t> k, v; ///< the cache of the beams under test, [slot][head][dim]

private:
  static float valueOf(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

  void write(std::mt19937 &random, std::vector<int> &tokens, std::int64_t slot) {
    tokens.push_back(static_cast<int>(ownK_.size()) / kRowOfK);
    for (auto [own, cache] : {std::pair(&ownK_, &k), std::pair(&ownV_, &v)}) {
      const std::vector<std::uint16_t> row = drawn(random, kRowOfK);
      own->insert(own->end(), row.begin(), row.end());
      std::copy(row.begin(), row.end(), cache->begin() + slot * kRowOfK);
    }
  }

  bool isRight(int beam, int head, const std::uint16_t *q, const std::uint16_t *out, float lse) const {
    double weights = 0, sum[kHeadDim] = {};
    for (const int token : beams_[static_cast<std::size_t>(beam)]) {
      const auto at = static_cast<std::size_t>(token * kRowOfK + head / (kQueryHeads / kKvHeads) * kHeadDim);
      double score = 0;
      for (int d = 0; d < kHeadDim; ++d)
        score += double{valueOf(q[d])} * valueOf(ownK_[at + static_cast<std::size_t>(d)]);
      const double weight = std::exp(kScale * score);
      weights += weight;
      for (int d = 0; d < kHeadDim; ++d)
        sum[d] += weight * valueOf(ownV_[at + static_cast<std::size_t>(d)]);
    }
    bool isRight = std::abs(lse - std::log(weights)) < 1e-3;
    for (int d = 0; d < kHeadDim; ++d)
      isRight = isRight && std::abs(valueOf(out[d]) - sum[d] / weights) < 0.005;
    return isRight;
  }

  std::vector<std::vector<int>> beams_;    ///< the tokens of each, by their numbers
  std::vector<std::uint16_t> ownK_, ownV_; ///< of all tokens that ever were, [token][head][dim]
};

} // namespace deft
