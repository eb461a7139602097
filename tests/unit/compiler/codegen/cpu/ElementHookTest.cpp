#include "compiler/codegen/cpu/ElementHook.h"

#include "tests/unit/compiler/codegen/cpu/KernelHarness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace deft::test {
namespace {

using spec::Builtin;
using spec::DType;
using spec::ExprOp;
using spec::ScalarType;

constexpr int kQPos = 37, kQuery = 3, kHead = 5; ///< of the first row

/// Kernels for all instruction sets that this machine has.
std::vector<Kernel> kernelsOf(const spec::Variant &variant) {
  std::vector<Kernel> kernels;
  auto host = codegen::cpu::CpuTarget::host();
  EXPECT_TRUE(host.ok());
  kernels.push_back(jitKernel(variant));
  for (int level = 3; level <= host->isaLevel; ++level)
    kernels.push_back(objectKernel(variant, *codegen::cpu::CpuTarget::level(level)));
  return kernels;
}

/// The elements that a kernel multiplies with keys, of two rows: a token whose key is 1 in one place and 0 in
/// the others has that element for a score, and alone its exponent's reference is the score.
std::vector<std::vector<float>> queriesSeen(const abi::CpuKernel &kernel, const spec::Variant &variant,
                                            const std::vector<std::uint16_t> &q,
                                            const abi::ParamSlot *params) {
  const int dim = variant.tensors.q.dim, rows = 2;
  const auto group = static_cast<std::size_t>(kernel.groupRows);
  std::vector<char> packed(static_cast<std::size_t>(kernel.packedGroupBytes));
  abi::CpuPackCall pack{};
  pack.q = q.data();
  pack.packed = packed.data();
  pack.rows = rows;
  pack.qPos = kQPos;
  pack.query = kQuery;
  pack.head = kHead;
  pack.params = params;
  kernel.pack(&pack);
  std::vector<std::vector<float>> seen(rows);
  for (int d = 0; d < dim; ++d) {
    std::vector<std::uint16_t> key(static_cast<std::size_t>(dim), 0);
    key[static_cast<std::size_t>(d)] = bitsOf(variant.tensors.k.dtype, 1);
    const std::vector<long long> offsets(abi::kCpuTokenPad, 0);
    const std::vector<int> zeros(group + abi::kCpuTokenPad, 0), low(abi::kCpuTokenPad, 0),
        high{rows, 0, 0, 0};
    std::vector<float> acc(group * static_cast<std::size_t>(dim), 0),
        m(group, -std::numeric_limits<float>::infinity()), l(group, 0);
    abi::CpuAttendCall call{};
    call.packed = packed.data();
    call.acc = acc.data();
    call.m = m.data();
    call.l = l.data();
    call.qPos = call.query = call.head = call.kvPos = call.depth = zeros.data();
    call.k = call.nextK = call.v = call.nextV = key.data();
    call.keyOffsets = call.valueOffsets = call.nextKeyOffsets = call.nextValueOffsets = offsets.data();
    call.rowLow = low.data();
    call.rowHigh = high.data();
    call.params = params;
    call.rows = rows;
    call.tokens = 1;
    kernel.attend(&call);
    for (int row = 0; row < rows; ++row)
      seen[static_cast<std::size_t>(row)].push_back(m[static_cast<std::size_t>(row)] +
                                                    std::log(l[static_cast<std::size_t>(row)]));
  }
  return seen;
}

std::vector<std::uint16_t> someRows(const spec::Variant &variant, int rows) {
  std::vector<std::uint16_t> q;
  for (int i = 0; i < rows * variant.tensors.q.dim; ++i)
    q.push_back(bitsOf(variant.tensors.q.dtype, static_cast<float>((i * 37) % 64 - 31) / 16));
  return q;
}

TEST(ElementHookTest, AQueryHasPartnersPlaceAndTheRowsRootMeanSquare) {
  for (const int dim : {16, 40, 48, 128})
    for (const DType dtype : {DType::BF16, DType::F16}) {
      SCOPED_TRACE(dim);
      spec::Variant variant = plainVariant(dim, dtype);
      variant.scale = 1;
      variant.params.emplace_back();
      variant.params[0].name = "each";
      variant.params[0].shape = spec::Param::Shape::PerQueryHead;
      Exprs x(variant);
      auto sum = x.element(0);
      for (const auto &[name, factor] :
           {std::pair(Builtin::X, 1.0), std::pair(Builtin::XHalf, 0.5), std::pair(Builtin::XPair, -0.25),
            std::pair(Builtin::XRms, 2.0), std::pair(Builtin::Dim, 0.125), std::pair(Builtin::QPos, 0.5),
            std::pair(Builtin::Head, 4.0), std::pair(Builtin::KvHead, 8.0), std::pair(Builtin::Query, 16.0)})
        sum = x.addWeighed(sum, name, factor);
      variant.query = sum;
      const float perHead[] = {0, 0, 0, 0, 0, 0.5f, -0.5f};
      abi::ParamSlot slot;
      slot.f32Array = perHead;
      const std::vector<std::uint16_t> q = someRows(variant, 2);
      for (const Kernel &kernel : kernelsOf(variant)) {
        ASSERT_TRUE(kernel);
        const auto seen = queriesSeen(*kernel, variant, q, &slot);
        for (int row = 0; row < 2; ++row) {
          const auto at = [&](int d) { return valueOf(dtype, q[static_cast<std::size_t>(row * dim + d)]); };
          double squares = 0;
          for (int d = 0; d < dim; ++d)
            squares += static_cast<double>(at(d)) * at(d);
          const int head = kHead + row;
          for (int d = 0; d < dim; ++d) {
            const double want = perHead[head] + at(d) + 0.5 * at((d + dim / 2) % dim) - 0.25 * at(d ^ 1) +
                                2 * std::sqrt(squares / dim) + 0.125 * d + 0.5 * kQPos + 4.0 * head +
                                8.0 * (head / 2) + 16.0 * kQuery;
            const float rounded = valueOf(dtype, bitsOf(dtype, static_cast<float>(want)));
            // As q is rounded once; at the edge of two roundings the sum of f32 may be on the other side.
            EXPECT_NEAR(seen[static_cast<std::size_t>(row)][static_cast<std::size_t>(d)], rounded,
                        std::fabs(want - rounded) >
                                0.49 * std::fabs(rounded) * (dtype == DType::BF16 ? 0x1p-8 : 0x1p-11)
                            ? std::fabs(rounded) * 0x1p-7
                            : 1e-4)
                << "row " << row << ", dim " << d;
          }
        }
      }
    }
}

TEST(ElementHookTest, WithoutAHookQueriesAreWhatTheyWere) {
  spec::Variant variant = plainVariant(32);
  variant.scale = 1;
  const std::vector<std::uint16_t> q = someRows(variant, 2);
  for (const Kernel &kernel : kernelsOf(variant)) {
    ASSERT_TRUE(kernel);
    const auto seen = queriesSeen(*kernel, variant, q, nullptr);
    for (std::size_t i = 0; i < q.size(); ++i)
      EXPECT_EQ(seen[i / 32][i % 32], valueOf(DType::BF16, q[i]));
  }
}

/// Of a row whose sums are 2 everywhere and whose weights sum to 4, and of one that saw nothing.
TEST(ElementHookTest, AnOutputIsOfTheNormalisedRowAndPartialsAreNot) {
  for (const bool isSigmoid : {false, true}) {
    spec::Variant variant = plainVariant(80);
    if (isSigmoid) {
      variant.normalize = spec::Normalize::Sigmoid;
      variant.withLse = false;
    }
    Exprs x(variant);
    const auto real = [&](Builtin name) { return x.op(ExprOp::ToF32, ScalarType::F32, {x.builtin(name)}); };
    // x * dim + head * 64 + q_pos + query
    auto sum = x.f32(ExprOp::Mul, {x.builtin(Builtin::X), real(Builtin::Dim)});
    sum = x.f32(ExprOp::Add, {sum, x.f32(ExprOp::Mul, {real(Builtin::Head), x.constant(64)})});
    sum = x.f32(ExprOp::Add, {sum, real(Builtin::QPos)});
    variant.output = x.f32(ExprOp::Add, {sum, real(Builtin::Query)});
    for (const Kernel &kernel : kernelsOf(variant)) {
      ASSERT_TRUE(kernel);
      std::vector<float> acc(160, 2.0f), partial(160);
      std::fill(acc.begin() + 80, acc.end(), 0.0f);
      const float m[] = {0, -std::numeric_limits<float>::infinity()}, l[] = {4, 0};
      std::vector<std::uint16_t> out(160);
      abi::CpuFinishCall call{};
      call.acc = acc.data();
      call.m = m;
      call.l = l;
      call.out = out.data();
      call.rows = 2;
      call.head = kHead;
      call.qPos = kQPos;
      call.query = kQuery;
      kernel->finish(&call);
      const float whole = isSigmoid ? 2.0f : 0.5f;
      for (int row = 0; row < 2; ++row)
        for (int d = 0; d < 80; ++d) {
          const float want = (row == 0 ? whole * static_cast<float>(d) : 0) +
                             static_cast<float>((kHead + row) * 64 + kQPos + kQuery);
          EXPECT_EQ(out[static_cast<std::size_t>(row * 80 + d)], bitsOf(DType::BF16, want))
              << row << ", " << d;
        }
      call.out = partial.data();
      kernel->finishPartial(&call);
      std::vector<float> plain(80, whole);
      plain.resize(160, 0.0f);
      EXPECT_EQ(partial, plain);

      const int slots[] = {0, 1};
      const float lse[] = {0, 0, 0, 0}; // of two heads each
      std::vector<float> parts(320, 1.0f);
      abi::CpuMergeCall merge{};
      merge.partialOut = parts.data();
      merge.partialLse = lse;
      merge.slots = slots;
      merge.slotCount = 2;
      merge.out = out.data();
      merge.rows = 1;
      merge.head = kHead;
      merge.qPos = kQPos;
      merge.query = kQuery;
      kernel->merge(&merge);
      for (int d = 0; d < 80; ++d)
        EXPECT_EQ(out[static_cast<std::size_t>(d)],
                  bitsOf(DType::BF16, (isSigmoid ? 2.0f : 1.0f) * static_cast<float>(d) +
                                          static_cast<float>(kHead * 64 + kQPos + kQuery)));
    }
  }
}

} // namespace
} // namespace deft::test
