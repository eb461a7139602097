#include "tests/device/Words.h"

#include "deft/merge.cuh"
#include "tests/device/DeviceConfig.h"
#include "tests/device/RandomItem.h"

#include <gtest/gtest.h>

namespace deft {
namespace {

using test::draw;

template <class E, int kDim> struct Config : test::DeviceConfig {
  using Query = E;
  using Key = E;
  using Value = E;
  using Output = E;
  static constexpr int kKeyDim = kDim, kValueDim = kDim, kQueryHeads = 3;
};

/// Merged queries with any number of partials, some of them empty; by many blocks, where each takes a row at
/// a time, and by few, where each warp does. Gives what was written, for comparison.
/// As deft::Sinks: head 1 has none.
struct HeadSinks {
  static constexpr bool kAreThere = true;
  float operator()(int head) const { return head == 1 ? -kInfinity : 5.f * static_cast<float>(head) - 2.f; }
};

/// As deft::OutputHook.
struct SomeHook {
  static constexpr bool kIsThere = true;
  static float element(float x, int dim, int qPos, int head, int query) {
    return x * (1.f + 0.5f * static_cast<float>(dim % 3)) + static_cast<float>(qPos + 2 * head - query);
  }
  float4 operator()(const float4 &x, int dim, int qPos, int head, int query) const {
    return {element(x.x, dim, qPos, head, query), element(x.y, dim + 1, qPos, head, query),
            element(x.z, dim + 2, qPos, head, query), element(x.w, dim + 3, qPos, head, query)};
  }
};

template <class C, bool kSigmoid, class Sinks = NoSinks, class Hook = NoOutputHook>
std::vector<std::uint16_t> mergeAll(unsigned seed, unsigned blocks) {
  constexpr int kDim = C::kValueDim, kHeads = C::kQueryHeads, kSlots = 40;
  using P = Partial<C>;
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 2);
  const int queries = draw(random, 1, 6);
  std::vector<uint2> values(kSlots * kHeads * kDim / 4);
  std::vector<float> lse(kSlots * kHeads);
  for (std::size_t row = 0; row < lse.size(); ++row) {
    const bool isEmpty = random() % 5 == 0;
    lse[row] = isEmpty ? -kInfinity : normal(random) * 4;
    for (std::size_t i = 0; i < kDim / 4; ++i) {
      const auto pair = [&] { return isEmpty ? 0u : ptx::pack2<P>(normal(random), normal(random)); };
      values[row * kDim / 4 + i] = {pair(), pair()};
    }
  }
  std::vector<int> caller(static_cast<std::size_t>(queries)), query, begin{0}, slots;
  for (int i = 0; i < queries; ++i)
    caller[static_cast<std::size_t>(i)] = query.emplace_back(queries - 1 - i);
  for (int i = 0; i < queries; ++i) {
    for (int n = std::array{0, 1, 3, 8, 33, 40}[random() % 6]; n > 0; --n)
      slots.push_back(draw(random, 0, kSlots - 1));
    begin.push_back(static_cast<int>(slots.size()));
  }
  query.insert(query.end(), {-1, -1}); // where a graph was captured for more
  begin.insert(begin.end(), {1 << 20, 1 << 20});
  const int stride = kHeads * kDim + draw(random, 0, 2) * 16; // of the output's rows
  std::vector<int> queryPos(static_cast<std::size_t>(queries));
  for (int i = 0; i < queries; ++i)
    queryPos[static_cast<std::size_t>(i)] = 3 * i - 1;
  std::vector<uint2> out(static_cast<std::size_t>(queries * stride / 4), {0x7fff7fff, 0x7fff7fff});
  std::vector<float> outLse(static_cast<std::size_t>(queries) * kHeads, 12345.f);
  const abi::MergeArgs args{out.data(),   outLse.data(), values.data(),  lse.data(),  caller.data(),
                            query.data(), begin.data(),  slots.data(),   queries + 2, stride,
                            nullptr,      nullptr,       queryPos.data()};
  for (unsigned block = 0; block < blocks; ++block)
    EXPECT_EQ(test::runBlock({.threads = 32 * kMergeWarps, .block = block, .blocks = blocks, .seed = seed},
                             [&] { merge<C, kSigmoid>(args, Sinks{}, Hook{}); }),
              "");
  const auto *got = reinterpret_cast<const std::uint16_t *>(out.data());
  const auto *partial = reinterpret_cast<const std::uint16_t *>(values.data());
  for (int i = 0; i < queries; ++i)
    for (int head = 0; head < kHeads; ++head) {
      const int to = caller[static_cast<std::size_t>(query[i])];
      const std::size_t row = static_cast<std::size_t>(to * kHeads + head);
      const auto *const gotRow = got + to * stride + head * kDim;
      double sink = -kInfinity;
      if constexpr (Sinks::kAreThere)
        sink = Sinks{}(head);
      double top = std::max(-1e300, sink);
      for (int s = begin[i]; s < begin[i + 1]; ++s)
        top = std::max(top, double{lse[static_cast<std::size_t>(slots[s] * kHeads + head)]});
      const auto weightOf = [&](int s) {
        const double mine = lse[static_cast<std::size_t>(slots[s] * kHeads + head)];
        return kSigmoid ? 1.0 : mine == -kInfinity ? 0.0 : std::exp(mine - top);
      };
      double sum = std::exp(sink - top);
      for (int s = begin[i]; s < begin[i + 1]; ++s)
        sum += weightOf(s);
      const bool isEmpty = sum == 0;
      for (int d = 0; d < kDim; ++d) {
        double want = 0, size = 0;
        for (int s = begin[i]; s < begin[i + 1]; ++s) {
          const double part =
              weightOf(s) *
              ptx::toFloat<P>(partial[(slots[s] * kHeads + head) * static_cast<long long>(kDim) + d]);
          want += part;
          size += std::abs(part);
        }
        const double by = kSigmoid || isEmpty ? 1 : sum;
        double is = want / by;
        if constexpr (Hook::kIsThere)
          is = SomeHook::element(static_cast<float>(is), d, queryPos[static_cast<std::size_t>(query[i])],
                                 head, to);
        const double moved = 2 * size / by + std::abs(is);
        EXPECT_NEAR(ptx::toFloat<typename C::Output>(gotRow[d]), is,
                    (std::is_same_v<typename C::Output, bf16> ? 1.0 / 250 : 1.0 / 2000) *
                            (Hook::kIsThere ? moved : size / by) +
                        1e-6)
            << "seed " << seed << " query " << i << " column " << d;
      }
      if (!kSigmoid && isEmpty) {
        EXPECT_EQ(outLse[row], -kInfinity);
      } else if (!kSigmoid) {
        EXPECT_NEAR(outLse[row], top + std::log(sum), 1e-5) << "seed " << seed;
      }
    }
  for (int i = 0; i < queries; ++i)
    for (int d = kHeads * kDim; d < stride; ++d)
      EXPECT_EQ(got[i * stride + d], 0x7fff) << "between the rows";
  return {got, got + out.size() * 4};
}

/// The bits do not depend on who takes a row.
template <class C, bool kSigmoid, class Sinks = NoSinks, class Hook = NoOutputHook>
void mergeByBlocksAndWarps(unsigned seed) {
  EXPECT_EQ((mergeAll<C, kSigmoid, Sinks, Hook>(seed, 30)), (mergeAll<C, kSigmoid, Sinks, Hook>(seed, 2)))
      << "seed " << seed;
}

TEST(MergeTest, PartialsAreSummedTheSameByBlocksAndByWarps) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    mergeByBlocksAndWarps<Config<f16, 64>, false>(seed);
    mergeByBlocksAndWarps<Config<bf16, 128>, false>(seed);
    mergeByBlocksAndWarps<Config<f16, 80>, true>(seed);
    mergeByBlocksAndWarps<Config<f16, 256>, false>(seed);
  }
}

TEST(MergeTest, SinksJoinOnceAndGiveRowsWithoutTokensTheirLogarithm) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    mergeByBlocksAndWarps<Config<f16, 64>, false, HeadSinks>(seed);
    mergeByBlocksAndWarps<Config<bf16, 128>, false, HeadSinks>(seed);
  }
}

/// Of rows without partials, too, whose elements are 0 before it.
TEST(MergeTest, OutputsAreWrittenAsTheirHookSays) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    mergeByBlocksAndWarps<Config<f16, 64>, false, NoSinks, SomeHook>(seed);
    mergeByBlocksAndWarps<Config<bf16, 80>, true, NoSinks, SomeHook>(seed);
    mergeByBlocksAndWarps<Config<bf16, 128>, false, HeadSinks, SomeHook>(seed);
  }
}

} // namespace
} // namespace deft
