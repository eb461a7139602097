#pragma once

#include "deft/hook_math.cuh"
#include "deft/types.cuh"

#include <bit>
#include <cmath>

/// Configs and variants as generated files have them, for tests of device code.
namespace deft::test {

struct DeviceConfig {
  using Query = f16;
  using Key = f16;
  using Value = f16;
  using Output = f16;
  static constexpr int kQueryHeads = 8, kKvHeads = 2, kRatio = 4, kKeyDim = 64, kValueDim = 64;
  static constexpr bool kWithLse = true;
  static constexpr int kPageSize = 0;
  static constexpr bool kIsDealt = false;
};

/// The sm80 family's blocks: two warps that share 16 rows, each with half of a tile's tokens.
struct Sm80Config : DeviceConfig {
  static constexpr int kTileQ = 16, kTileKv = 32, kStages = 2, kWarps = 2;
};

/// The sm90 family's: one computing warpgroup, two or three.
struct LightConfig : DeviceConfig {
  static constexpr int kTileQ = 64, kTileKv = 64, kStages = 2, kWarps = 8;
};
struct WideConfig : DeviceConfig {
  static constexpr int kTileQ = 128, kTileKv = 64, kStages = 4, kWarps = 12;
};
struct TallConfig : DeviceConfig {
  static constexpr int kTileQ = 192, kTileKv = 64, kStages = 4, kWarps = 16;
};

/// Scaled products, and the tree alone says who sees what.
struct PlainVariant {
  struct Params {};
  struct Row {};
  static constexpr bool kHasMask = false, kHasScore = false, kSigmoid = false;
  static constexpr bool kReadsDepth = false, kReadsQuery = false;
  static constexpr float kScale = 0.125f;

  static Row row(const Params &, int, int, int, int) { return {}; }
  static float score(const Params &, const Row &, float s, int, int, int) { return s; }
  static bool mask(const Params &, const Row &, int, int, int) { return true; }
  static TileVisibility tile(const Params &, const TileBounds &) { return {true, true}; }
};

/// A query sees so many positions up to its own.
struct WindowVariant : PlainVariant {
  struct Params {
    int window;
  };
  struct Row {
    int least, most;
  };
  static constexpr bool kHasMask = true;

  static Row row(const Params &p, int qPos, int, int, int) { return {qPos - p.window + 1, qPos}; }
  static float score(const Params &, const Row &, float s, int, int, int) { return s; }
  static bool mask(const Params &, const Row &row, int kvPos, int, int) {
    return kvPos >= row.least && kvPos <= row.most;
  }
  static TileVisibility tile(const Params &p, const TileBounds &b) {
    return {b.qLo - p.window < b.kvHi && b.kvLo <= b.qHi, b.qHi - p.window < b.kvLo && b.kvHi <= b.qLo};
  }
};

/// Scores that a cap bounds, and scores with a slope: each in the shorter way that its form has.
struct CappedVariant : PlainVariant {
  static constexpr bool kHasScore = true, kIsCapped = true, kHasOneCap = true, kIsSloped = false;
  static constexpr float kCap = 3.f;

  static float score(const Params &, const Row &, float s, int, int, int) {
    return kCap * std::tanh(s / kCap);
  }
  static ScoreForm form(const Params &, const Row &, int) { return {kCap, 1.f / kCap, 0.f, 0}; }
};
struct SlopedVariant : PlainVariant {
  struct Row {
    int head, qPos;
  };
  static constexpr bool kHasScore = true, kIsCapped = false, kHasOneCap = false, kIsSloped = true;

  static Row row(const Params &, int qPos, int head, int, int) { return {head, qPos}; }
  static float score(const Params &, const Row &row, float s, int kvPos, int, int) {
    return s + slopeOf(row) * static_cast<float>(kvPos - row.qPos);
  }
  static ScoreForm form(const Params &, const Row &row, int) { return {0.f, 0.f, slopeOf(row), row.qPos}; }
  static float slopeOf(const Row &row) { return 0.002f * static_cast<float>(row.head + 1); }
};
/// Scores far apart, whose largest one may be anywhere.
struct SteepVariant : PlainVariant {
  static constexpr float kScale = 1.f;
};
/// A score of no known form, which asks for all that there is.
struct HookVariant : PlainVariant {
  struct Row {
    int qPos;
  };
  static constexpr bool kHasScore = true, kIsCapped = false, kHasOneCap = false, kIsSloped = false;

  static Row row(const Params &, int qPos, int, int, int) { return {qPos}; }
  static float score(const Params &, const Row &row, float s, int kvPos, int depth, int kvHead) {
    return s * (kvPos < row.qPos ? 0.5f : 1.f) + 0.01f * static_cast<float>(depth + kvHead);
  }
};
/// Two arrays over tokens: a query sees the tokens of its document and those of all, and scores are weighed.
struct TokensVariant : PlainVariant {
  struct Params {
    const int *document;
    const float *gain;
  };
  struct Token {
    int document;
    float gain;
  };
  struct Row {
    int own;
  };
  static constexpr bool kHasMask = true, kHasScore = true;
  static constexpr bool kIsCapped = false, kHasOneCap = false, kIsSloped = false;

  static Token token(const int *words, int stride) { return {words[0], std::bit_cast<float>(words[stride])}; }
  template <class Visit>
  static void forEachElement(const Params &p, long long slot, int, const Visit &visit) {
    visit(0, p.document + slot);
    visit(1, p.gain + slot);
  }
  static Row row(const Params &, int, int, int, int query) { return {query % 3}; }
  static float score(const Params &, const Row &, float s, int, int, int, const Token &token) {
    return s * token.gain;
  }
  static bool mask(const Params &, const Row &row, int, int, int, const Token &token) {
    return token.document < 0 || token.document == row.own;
  }
  static TileVisibility tile(const Params &, const TileBounds &) { return {true, false}; }
};
/// Scales of K and V for each KV head of a token, and a factor of V by where the token is.
struct ScaledRowsVariant : PlainVariant {
  struct Params {
    const float *keyScale, *valueScale; ///< [slot][2]
  };
  struct Token {
    float keyScale, valueScale;
  };
  static constexpr bool kHasScore = true;
  static constexpr bool kIsCapped = false, kHasOneCap = false, kIsSloped = false;

  static Token token(const int *words, int stride) {
    return {std::bit_cast<float>(words[0]), std::bit_cast<float>(words[stride])};
  }
  template <class Visit>
  static void forEachElement(const Params &p, long long slot, int kvHead, const Visit &visit) {
    visit(0, p.keyScale + slot * 2 + kvHead);
    visit(1, p.valueScale + slot * 2 + kvHead);
  }
  static Row row(const Params &, int, int, int, int) { return {}; }
  static float score(const Params &, const Row &, float s, int, int, int, const Token &token) {
    return s * token.keyScale;
  }
  static float valueFactor(const Params &, int kvPos, int depth, int kvHead, const Token &token) {
    return token.valueScale * static_cast<float>(1 + kvPos % 3 + depth + kvHead);
  }
};
/// A factor of V that no array is asked for.
struct WeighedValuesVariant : PlainVariant {
  static float valueFactor(const Params &, int kvPos, int depth, int kvHead) {
    return 0.25f * static_cast<float>(1 + kvPos % 3 + depth - 2 * kvHead);
  }
};
template <class Base> struct SigmoidOf : Base {
  static constexpr bool kSigmoid = true;
};
/// A logit for each head that only the denominator sees.
struct SunkVariant : PlainVariant {
  static float sink(const Params &, int head, int kvHead) {
    return 0.75f * static_cast<float>(head) - 1.f + 0.125f * static_cast<float>(kvHead);
  }
};
/// Queries beyond the range of f16, and below it.
/// A factor and a term by all that a hook of the output may read.
struct GatedVariant : PlainVariant {
  static float output(const Params &, float x, int dim, int qPos, int head, int kvHead, int query) {
    return x * (1.f + 0.25f * static_cast<float>(dim % 3 + head % 2)) +
           0.125f * static_cast<float>(qPos % 5 + kvHead + query % 3 - dim % 2);
  }
};
/// Keys by all that a hook of them may read, and keys that are turned by their position.
struct KeyedVariant : PlainVariant {
  static constexpr bool kKeyReadsRms = true;

  static float key(const Params &, float x, float half, float pair, float rms, int dim, int kvPos,
                   int kvHead) {
    return 0.5f * x - 0.25f * half + 0.125f * pair +
           rms * (0.0625f * static_cast<float>(dim % 3) + 0.03125f * static_cast<float>(kvPos % 7 - kvHead));
  }
};
template <int kDim> struct TurnedVariant : PlainVariant {
  static constexpr bool kKeyReadsRms = false;

  static float key(const Params &, float x, float half, float, float, int dim, int kvPos, int) {
    const float angle = static_cast<float>(kvPos) / static_cast<float>(1 + dim % (kDim / 2));
    return x * cosFast(angle) + (dim < kDim / 2 ? -half : half) * sinFast(angle);
  }
};
struct KeyedWindowVariant : WindowVariant {
  static constexpr bool kKeyReadsRms = true;

  static float key(const Params &p, float x, float half, float pair, float rms, int dim, int kvPos,
                   int kvHead) {
    return KeyedVariant::key({}, x, half, pair, rms, dim, kvPos + p.window, kvHead);
  }
};
struct LargeQueriesVariant : PlainVariant {
  static constexpr float kQueryUnit = 0x1p30f, kScale = 0x1p-33f;
};
struct SmallQueriesVariant : PlainVariant {
  static constexpr float kQueryUnit = 0x1p-30f, kScale = 0x1p27f;
};
using SigmoidVariant = SigmoidOf<PlainVariant>;

} // namespace deft::test
