#pragma once

#include "tests/device/AttendCase.h"
#include "tests/device/DeviceConfig.h"

#include <random>
#include <vector>

/// What the tokens of a case's cache have beside their vectors.
namespace deft::test {

/// With two arrays over tokens.
template <class Base> struct OfTokens : Base {
  static constexpr int kTokenParams = 2;
};

/// Of TokensVariant, for each slot.
struct Documents {
  std::vector<int> document;
  std::vector<float> gain;

  explicit Documents(unsigned seed) {
    std::mt19937 random(seed);
    for (int slot = 0; slot < kCasePlaces; ++slot) {
      document.push_back(draw(random, -1, 2));
      gain.push_back(static_cast<float>(draw(random, -8, 8)) / 8);
    }
  }
  TokensVariant::Params params() const { return {document.data(), gain.data()}; }
};

/// Of ScaledRowsVariant, for each of two KV heads of each slot.
struct RowScales {
  std::vector<float> keys, values;

  explicit RowScales(unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < 2 * kCasePlaces; ++i) {
      keys.push_back(static_cast<float>(draw(random, -8, 8)) / 8);
      values.push_back(static_cast<float>(draw(random, -8, 8)) / 8);
    }
  }
  ScaledRowsVariant::Params params() const { return {keys.data(), values.data()}; }
};

} // namespace deft::test
