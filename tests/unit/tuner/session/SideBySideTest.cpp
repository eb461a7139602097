#include "tuner/session/SideBySide.h"

#include "tests/support/Forest.h"
#include "tests/support/VariantBuilder.h"

#include <gtest/gtest.h>

namespace deft::session {
namespace {

using support::Result;

/// A run takes ten microseconds an item; every third one takes far longer, as when the machine is disturbed.
class ItemRunner : public measure::Runner {
public:
  explicit ItemRunner(std::vector<std::size_t> &order) : order_(order) {}
  int blocks() const override { return 4; }
  Result<void> run(const plan::Plan &, measure::InputSet, exec::Outputs &) override { return {}; }
  Result<std::vector<double>> time(const plan::Plan &plan, int repeats) override {
    order_.push_back(plan.items.size());
    std::vector<double> us(static_cast<std::size_t>(repeats), 10.0 * static_cast<double>(plan.items.size()));
    us.back() *= 50;
    return us;
  }

private:
  std::vector<std::size_t> &order_;
};

class ItemMachine : public measure::Machine {
public:
  explicit ItemMachine(std::vector<std::size_t> &order) : order_(order) {}
  config_cache::DeviceKey key() const override { return config_cache::DeviceKey::ofCpu(4); }
  Result<void> load(exec::Inputs &, measure::InputSet) override { return {}; }
  Result<std::unique_ptr<measure::Runner>> open(const package::KernelSet *) override {
    return std::unique_ptr<measure::Runner>(std::make_unique<ItemRunner>(order_));
  }

private:
  std::vector<std::size_t> &order_;
};

config::Config chunked(int tokens) {
  config::Config config;
  config.partition = spec::Partition::Node;
  config.chunkTokens = tokens;
  config.phases = {{"tiles", -1, config::Family::Sm80, 64, 64, 2, 4}};
  return config;
}

class SideBySideTest : public testing::Test {
protected:
  SideBySideTest() {
    work_.variant = test::VariantBuilder(4, 2, 8).variant;
    work_.classes = {{"class", {test::levelTree({1, 4}, {640, 64}), test::levelTree({1, 9}, {640, 60})}}};
  }
  SideBySide make(SideBySide::Options options = {}) {
    return {work_, std::make_unique<ItemMachine>(order_), std::move(options)};
  }

  measure::Work work_;
  std::vector<std::size_t> order_; ///< items of each timing request, as they came
};

TEST_F(SideBySideTest, TimesAreTypicalOnesOfTheTree) {
  SideBySide timed = make();
  const auto us = timed.measure("class", 0, {chunked(1024), chunked(64)});
  ASSERT_TRUE(us) << us.error().message;
  ASSERT_EQ(us->size(), 2U);
  EXPECT_DOUBLE_EQ((*us)[0], 50);  // five nodes
  EXPECT_DOUBLE_EQ((*us)[1], 140); // ten chunks of the root
  EXPECT_DOUBLE_EQ((*timed.measure("class", 1, {chunked(1024)}))[0], 100);
}

TEST_F(SideBySideTest, EachRoundTimesAllAndTurnsTheOrder) {
  SideBySide::Options options;
  options.rounds = 2;
  ASSERT_TRUE(make(options).measure("class", 0, {chunked(1024), chunked(64)}));
  EXPECT_EQ(order_, (std::vector<std::size_t>{5, 14, 14, 5}));
}

TEST_F(SideBySideTest, OnlyTreesThatAreGivenAreTimed) {
  EXPECT_EQ(make().measure("other", 0, {chunked(64)}).error().message,
            "no such tree of class other is given");
  EXPECT_EQ(make().measure("class", 2, {chunked(64)}).error().message,
            "no such tree of class class is given");
}

TEST_F(SideBySideTest, KernelsThatCannotBeMadeAreAnError) {
  SideBySide::Options options;
  options.kernels = [](const config::Config &) -> Result<package::KernelSet> {
    return support::Error{support::ErrorCode::Environment, "no NVRTC", ""};
  };
  EXPECT_EQ(make(options).measure("class", 0, {chunked(64)}).error().message, "no NVRTC");
}

} // namespace
} // namespace deft::session
