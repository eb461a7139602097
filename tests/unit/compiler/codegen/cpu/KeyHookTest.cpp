#include "compiler/codegen/cpu/KeyHook.h"

#include "tests/unit/compiler/codegen/cpu/KernelHarness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace deft::test {
namespace {

using spec::Builtin;
using spec::DType;

constexpr int kTokens = 6, kKvHead = 1;
constexpr int kPositions[] = {0, 3, 4, 5, 90, 91, 0, 0}; ///< of tokens, in any order; with padding

/// What a kernel multiplies with q, of each token: a row of q that is 1 in one place and 0 in the others has
/// that element for a score, and where one token alone is seen, its exponent's reference is the score.
std::vector<std::vector<float>> keysSeen(const abi::CpuKernel &kernel, const spec::Variant &variant,
                                         const std::vector<std::uint16_t> &k, const abi::ParamSlot *params) {
  const int dim = variant.tensors.q.dim;
  const auto group = static_cast<std::size_t>(kernel.groupRows);
  std::vector<std::vector<float>> seen(kTokens);
  for (int d = 0; d < dim; ++d) {
    std::vector<std::uint16_t> q(static_cast<std::size_t>(dim), 0);
    q[static_cast<std::size_t>(d)] = bitsOf(variant.tensors.q.dtype, 1);
    std::vector<char> packed(static_cast<std::size_t>(kernel.packedGroupBytes));
    abi::CpuPackCall pack{};
    pack.q = q.data();
    pack.packed = packed.data();
    pack.rows = 1;
    kernel.pack(&pack);
    std::vector<long long> offsets(2 * abi::kCpuTokenPad, 0);
    for (int t = 0; t < kTokens; ++t)
      offsets[static_cast<std::size_t>(t)] = t * dim;
    const std::vector<int> zeros(group + abi::kCpuTokenPad, 0);
    for (int t = 0; t < kTokens; ++t) {
      std::vector<int> low(2 * abi::kCpuTokenPad, 0), high(2 * abi::kCpuTokenPad, 0);
      high[static_cast<std::size_t>(t)] = 1;
      std::vector<float> acc(group * static_cast<std::size_t>(dim), 0),
          m(group, -std::numeric_limits<float>::infinity()), l(group, 0);
      abi::CpuAttendCall call{};
      call.packed = packed.data();
      call.acc = acc.data();
      call.m = m.data();
      call.l = l.data();
      call.qPos = call.query = call.head = call.depth = zeros.data();
      call.kvPos = kPositions;
      call.k = call.nextK = call.v = call.nextV = k.data();
      call.keyOffsets = call.valueOffsets = call.nextKeyOffsets = call.nextValueOffsets = offsets.data();
      call.rowLow = low.data();
      call.rowHigh = high.data();
      call.params = params;
      call.rows = 1;
      call.tokens = kTokens;
      call.kvHead = kKvHead;
      call.cut = 1;
      kernel.attend(&call);
      seen[static_cast<std::size_t>(t)].push_back(m[0] + std::log(l[0]));
    }
  }
  return seen;
}

// Rules H6, H7.
TEST(KeyHookTest, AKeyHasPartnersPlaceItsPositionAndTheRowsRootMeanSquare) {
  for (const int dim : {8, 16, 24, 40, 48, 128})
    for (const DType dtype : {DType::BF16, DType::F16}) {
      SCOPED_TRACE(dim);
      spec::Variant variant = plainVariant(dim, dtype);
      variant.scale = 1;
      variant.params.emplace_back();
      variant.params[0].name = "each";
      variant.params[0].shape = spec::Param::Shape::PerKvHead;
      Exprs x(variant);
      auto sum = x.element(0);
      for (const auto &[name, factor] :
           {std::pair(Builtin::X, 1.0), std::pair(Builtin::XHalf, 0.5), std::pair(Builtin::XPair, -0.25),
            std::pair(Builtin::XRms, 2.0), std::pair(Builtin::Dim, 0.125), std::pair(Builtin::KvPos, 0.5),
            std::pair(Builtin::KvHead, 8.0)})
        sum = x.addWeighed(sum, name, factor);
      variant.key = sum;
      const float perHead[] = {0, 0.5f};
      abi::ParamSlot slot;
      slot.f32Array = perHead;
      std::vector<std::uint16_t> k;
      for (int i = 0; i < kTokens * dim; ++i)
        k.push_back(bitsOf(dtype, static_cast<float>((i * 37) % 64 - 31) / 16));
      const auto host = codegen::cpu::CpuTarget::host();
      ASSERT_TRUE(host.ok());
      std::vector<Kernel> kernels{jitKernel(variant)};
      for (int level = 3; level <= host->isaLevel; ++level)
        kernels.push_back(objectKernel(variant, *codegen::cpu::CpuTarget::level(level)));
      for (const Kernel &kernel : kernels) {
        ASSERT_TRUE(kernel);
        const auto seen = keysSeen(*kernel, variant, k, &slot);
        for (int t = 0; t < kTokens; ++t) {
          const auto at = [&](int d) { return valueOf(dtype, k[static_cast<std::size_t>(t * dim + d)]); };
          double squares = 0;
          for (int d = 0; d < dim; ++d)
            squares += static_cast<double>(at(d)) * at(d);
          for (int d = 0; d < dim; ++d) {
            const double want = 0.5 + at(d) + 0.5 * at((d + dim / 2) % dim) - 0.25 * at(d ^ 1) +
                                2 * std::sqrt(squares / dim) + 0.125 * d + 0.5 * kPositions[t] +
                                8.0 * kKvHead;
            const float rounded = valueOf(dtype, bitsOf(dtype, static_cast<float>(want)));
            // It is rounded once; at the edge of two roundings the sum of f32 may be on the other side.
            const bool isAtEdge = std::fabs(want - rounded) >
                                  0.49 * std::fabs(rounded) * (dtype == DType::BF16 ? 0x1p-8 : 0x1p-11);
            EXPECT_NEAR(seen[static_cast<std::size_t>(t)][static_cast<std::size_t>(d)], rounded,
                        isAtEdge ? std::fabs(rounded) * 0x1p-7 : 1e-4)
                << "token " << t << ", dim " << d;
          }
        }
      }
    }
}

} // namespace
} // namespace deft::test
