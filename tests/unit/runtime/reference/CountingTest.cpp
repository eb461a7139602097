#include "runtime/reference/Counting.h"

#include "runtime/exec/Half.h"
#include "runtime/exec/RandomInputs.h"
#include "runtime/reference/Check.h"
#include "runtime/tree/CachePlacement.h"
#include "tests/support/Forest.h"
#include "tests/support/VariantBuilder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <random>

namespace deft::reference {
namespace {

using spec::DType;

/// A token that the row of one head sees so often.
struct Fault {
  int token = -1, times = 1;
};

/// One query on a chain of nodes. What a kernel gives for it is computed here, with all roundings that a
/// kernel may make: weights to the dtype, partials of 1,000 tokens to the dtype, and the output.
class Chain {
public:
  Chain(spec::Variant variant, int tokens) : variant_(std::move(variant)) {
    tree_ = test::levelTree({1, 1, 1}, {tokens / 2, tokens / 3, tokens - tokens / 2 - tokens / 3});
    const auto placement = tree::placeInCache(
        tree_, {.pageSize = variant_.cache.pageSize, .order = tree::PlacementOrder::Scattered, .seed = 5});
    inputs_ = exec::makeRandomInputs(variant_, tree_, *placement, {}, 5);
  }

  /// Faults of each head; none: a right kernel.
  CountReport count(const std::vector<Fault> &faults = {}, int mostPasses = 0, int turn = 0,
                    const Deadline &deadline = std::nullopt) {
    if (!counting_)
      counting_.emplace(variant_, tree_, inputs_);
    const auto ran = runPasses(
        *counting_,
        [&](exec::Inputs &inputs, exec::Outputs &outputs) {
          outputs = run(inputs, faults);
          return support::Result<void>();
        },
        mostPasses, turn, deadline);
    EXPECT_TRUE(ran.ok());
    return counting_->judge();
  }

  exec::Outputs run(const exec::Inputs &inputs, const std::vector<Fault> &faults) {
    if (weights_.empty())
      for (int head = 0; head < variant_.queryHeads; ++head)
        weights_.push_back(weightsOfZeroKeys(variant_, tree_, inputs, 0, head));
    exec::Outputs outputs;
    for (int head = 0; head < variant_.queryHeads; ++head)
      addRow(inputs, head, faults.empty() ? Fault() : faults[static_cast<std::size_t>(head)], outputs);
    return outputs;
  }

  const spec::Variant &variant() const { return variant_; }
  const tree::KvTree &tree() const { return tree_; }
  const exec::Inputs &inputs() const { return inputs_; }
  int tokens() const { return static_cast<int>(tree_.tokens()); }

private:
  void addRow(const exec::Inputs &inputs, int head, const Fault &fault, exec::Outputs &outputs) {
    const std::vector<double> &weights = weights_[static_cast<std::size_t>(head)].ofToken;
    const double top = *std::max_element(weights.begin(), weights.end());
    std::vector<double> partial(static_cast<std::size_t>(variant_.tensors.v.dim)), out(partial.size());
    double inPartial = 0, total = 0;
    std::size_t position = 0;
    const auto close = [&] {
      if (inPartial == 0)
        return;
      for (std::size_t d = 0; d < out.size(); ++d)
        out[d] +=
            inPartial * exec::roundTo(std::exchange(partial[d], 0) / inPartial, variant_.tensors.v.dtype);
      total += std::exchange(inPartial, 0);
    };
    for (const tree::Node &node : tree_.nodes())
      for (int t = 0; t < node.tokens; ++t, ++position) {
        const int times = static_cast<int>(position) == fault.token ? fault.times : 1;
        const double weight = weights[position] / top;
        inPartial += times * weight;
        const std::uint16_t *value = &inputs.v[static_cast<std::size_t>(
            inputs.valueAt(node.location + t, variant_.cache.pageSize, head / variant_.ratio()))];
        for (std::size_t d = 0; d < out.size(); ++d)
          if (value[d] != 0)
            partial[d] += times * exec::roundTo(weight, variant_.tensors.v.dtype) *
                          exec::toFloat(value[d], variant_.tensors.v.dtype);
        if (position % 1000 == 999)
          close();
      }
    close();
    for (const double value : out)
      outputs.out.push_back(exec::fromFloat(static_cast<float>(value / total), variant_.tensors.out.dtype));
    if (variant_.withLse)
      outputs.lse.push_back(
          static_cast<float>(weights_[static_cast<std::size_t>(head)].lse + std::log(total * top)));
  }

  spec::Variant variant_;
  tree::KvTree tree_;
  exec::Inputs inputs_;
  std::vector<Weights> weights_; ///< of each head
  std::optional<Counting> counting_;
};

spec::Variant llama(DType dtype, int dim = 128) {
  test::VariantBuilder builder(32, 8, dim);
  builder.variant.tensors = spec::Tensors::alike(builder.variant.tensors.k.dim, dtype);
  return builder.variant;
}

/// Faults of all heads: another token each, lost or seen twice.
std::vector<Fault> faultsOf(std::mt19937 &random, int first, int tokens, int heads) {
  std::vector<Fault> faults;
  for (int head = 0; head < heads; ++head) {
    const int kind = std::uniform_int_distribution<int>(0, 3)(random);
    int token = std::uniform_int_distribution<int>(first, first + tokens - 1)(random);
    if (kind == 0)
      token = first;
    else if (kind == 1)
      token = first + tokens - 1;
    faults.push_back({token, head % 2 == 0 ? 0 : 2});
  }
  return faults;
}

TEST(CountingTest, OneTokenLostOrSeenTwiceByOneRowOfThirtyThousandIsAlwaysCaught) {
  for (const DType dtype : {DType::BF16, DType::F16}) {
    SCOPED_TRACE(dtype == DType::BF16 ? "bf16" : "f16");
    Chain chain(llama(dtype), 30'000);
    const CountReport right = chain.count();
    EXPECT_TRUE(right.passed()) << right.fault;
    EXPECT_EQ(right.pairs, 32 * 30'000);
    EXPECT_EQ(right.noticeable, right.pairs);
    EXPECT_EQ(right.passes, dtype == DType::BF16 ? 6 : 1);

    std::mt19937 random(7);
    for (int batch = 0; batch < (dtype == DType::BF16 ? 6 : 2); ++batch) {
      const CountReport wrong = chain.count(faultsOf(random, 0, 30'000, 32));
      EXPECT_EQ(wrong.wrongRows, 32) << "batch " << batch;
    }
  }
}

/// Why random values are not enough.
TEST(CountingTest, RandomValuesDoNotTellWhetherOneTokenIsLost) {
  Chain chain(llama(DType::BF16), 30'000);
  exec::Inputs inputs = chain.inputs();
  for (auto &element : inputs.k)
    element = 0;
  exec::Outputs outputs = chain.run(inputs, std::vector<Fault>(32, Fault{12'345, 0}));
  EXPECT_TRUE(check(chain.variant(), chain.tree(), inputs, outputs).passed());
}

TEST(CountingTest, WhereTokensWeighDifferentlyFaultsAreCaughtToo) {
  test::VariantBuilder builder(8, 2, 64);
  using enum spec::ExprOp;
  const auto distance =
      builder.op(ToF32, spec::ScalarType::F32,
                 {builder.op(Sub, spec::ScalarType::I32,
                             {builder.read(spec::Builtin::KvPos), builder.read(spec::Builtin::QPos)})});
  const auto rate = builder.op(Mul, spec::ScalarType::F32,
                               {builder.op(ToF32, spec::ScalarType::F32, {builder.read(spec::Builtin::Head)}),
                                builder.constant(1e-4)});
  builder.variant.score =
      builder.op(Add, spec::ScalarType::F32,
                 {builder.read(spec::Builtin::S), builder.op(Mul, spec::ScalarType::F32, {rate, distance})});
  builder.variant.mask =
      builder.op(Ge, spec::ScalarType::Bool, {builder.read(spec::Builtin::KvPos), builder.integer(1000)});
  builder.variant.withLse = true;
  Chain chain(builder.variant, 9'000);
  const CountReport right = chain.count();
  EXPECT_TRUE(right.passed()) << right.fault;
  EXPECT_EQ(right.pairs, 8 * 8'000);
  EXPECT_EQ(right.noticeable, right.pairs);
  std::mt19937 random(9);
  for (int batch = 0; batch < 10; ++batch)
    EXPECT_EQ(chain.count(faultsOf(random, 1'000, 8'000, 8)).wrongRows, 8);
}

TEST(CountingTest, AFaultIsNamed) {
  Chain chain(llama(DType::BF16, 64), 100);
  std::vector<Fault> faults(32);
  faults[5] = {47, 0};
  const CountReport report = chain.count(faults);
  EXPECT_EQ(report.wrongRows, 1);
  EXPECT_EQ(report.fault, "query 0, head 5: the tokens at positions 40 to 79 weigh 0.3945 together, not 0.4");
}

TEST(CountingTest, HeadsThatReadEachOthersValuesAreSeen) {
  Chain chain(llama(DType::BF16, 64), 100);
  Counting counting(chain.variant(), chain.tree(), chain.inputs());
  exec::Outputs outputs = chain.run(counting.inputs(0), {});
  std::swap_ranges(outputs.out.begin(), outputs.out.begin() + 64, outputs.out.begin() + 4 * 64);
  counting.take(outputs);
  EXPECT_EQ(counting.judge().wrongRows, 2); // the first of KV heads 0 and 1
}

TEST(CountingTest, PassesThatAreLeftOutComeInTurn) {
  Chain chain(llama(DType::BF16, 16), 3'000); // 640 tokens a pass
  std::vector<Fault> faults(32, Fault{2'999, 2});
  int caught = 0;
  for (int turn = 0; turn < 5; ++turn) {
    const CountReport report = chain.count(faults, 1, turn);
    EXPECT_EQ(report.passes, 1);
    EXPECT_EQ(report.allPasses, 5);
    caught += !report.passed();
  }
  EXPECT_EQ(caught, 1);
  EXPECT_FALSE(chain.count(faults, 5).passed());
}

TEST(CountingTest, AfterTheDeadlineOnePassIsMade) {
  Chain chain(llama(DType::BF16, 16), 3'000);
  const CountReport report =
      chain.count({}, 0, 0, std::chrono::steady_clock::now() - std::chrono::seconds(1));
  EXPECT_EQ(report.passes, 1);
  EXPECT_EQ(report.allPasses, 5);
}

TEST(CountingTest, OnlyTokensAreChanged) {
  Chain chain(llama(DType::F16, 64), 50);
  Counting counting(chain.variant(), chain.tree(), chain.inputs());
  ASSERT_EQ(counting.passes(), 1);
  const exec::Inputs &made = counting.inputs(0);
  EXPECT_EQ(made.q, chain.inputs().q);
  std::size_t ones = 0;
  for (std::size_t i = 0; i < made.v.size(); ++i) {
    if (made.v[i] == chain.inputs().v[i])
      continue; // slots of nobody are no numbers, and stay so
    EXPECT_EQ(made.k[i], 0);
    ones += made.v[i] == exec::f16FromFloat(1);
  }
  EXPECT_EQ(ones, 50U * 8);
}

} // namespace
} // namespace deft::reference
