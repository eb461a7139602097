#include "tuner/measure/MeasureService.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/kernels/DefaultConfig.h"
#include "tests/support/Forest.h"
#include "tests/support/ScalarKernel.h"

#include <gtest/gtest.h>

namespace deft::measure {
namespace {

using Scalar = test::ScalarKernel<4, 2, 16>;
using nlohmann::json;

Work makeWork() {
  Work work;
  work.variant = Scalar::variant();
  work.classes = {{"small", {test::levelTree({1, 4}, {40, 9}), test::levelTree({1, 3, 6}, {20, 12, 5})}},
                  {"large", {test::levelTree({2, 8}, {200, 30})}}};
  return work;
}

json config(spec::Partition partition, int chunk) {
  config::Config made = *kernels::defaultConfig(Scalar::variant(), nullptr);
  made.partition = partition;
  made.chunkTokens = chunk;
  return config::toJson(made);
}

Message ask(Service &service, json head) {
  auto answer = service.handle({std::move(head), {}});
  EXPECT_TRUE(answer.ok()) << answer.error().message;
  return answer ? *answer : Message{};
}

class MeasureServiceCacheTest : public testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(, MeasureServiceCacheTest, testing::Bool(),
                         [](const auto &info) { return info.param ? "shared" : "one_a_class"; });

TEST_P(MeasureServiceCacheTest, ChecksAndTimesCandidatesOnEveryTreeOfAClass) {
  Work work = makeWork();
  work.sharesCache = GetParam();
  auto service = makeMeasureService(work, [&] { return openCpu(work.variant, Scalar::kernel(), 1); });
  ASSERT_TRUE(service.ok());
  EXPECT_EQ(ask(**service, {{"op", "device"}}).head["key"]["kind"], "cpu");
  for (int index : {0, 1, 0}) {
    ask(**service, {{"op", "class"}, {"class", index}});
    for (const spec::Partition partition :
         {spec::Partition::Union, spec::Partition::Query, spec::Partition::Greedy}) {
      ask(**service, {{"op", "prepare"}, {"id", "a"}, {"config", config(partition, 16)}});
      const json checked = ask(**service, {{"op", "check"}, {"id", "a"}}).head;
      EXPECT_EQ(checked["right"], true) << checked["why"];
      for (std::size_t tree = 0; tree < work.classes[static_cast<std::size_t>(index)].trees.size(); ++tree) {
        const json times =
            ask(**service, {{"op", "time"}, {"id", "a"}, {"tree", tree}, {"repeats", 2}}).head["us"];
        ASSERT_EQ(times.size(), 2U);
        EXPECT_GT(times[0].get<double>(), 0);
      }
    }
  }
}

/// Plans lose the last token of the item that has the beginning of the paths.
class LosingRunner : public Runner {
public:
  explicit LosingRunner(std::unique_ptr<Runner> inner) : inner_(std::move(inner)) {}
  int blocks() const override { return inner_->blocks(); }
  support::Result<void> run(const plan::Plan &plan, InputSet set, exec::Outputs &outputs) override {
    plan::Plan damaged = plan;
    const auto runs = damaged.runs.toChange();
    for (abi::Item &item : damaged.items) {
      abi::Run &last = runs[static_cast<std::size_t>(item.runBegin + item.runCount - 1)];
      if (runs[static_cast<std::size_t>(item.runBegin)].position == 0) {
        --item.tokens;
        --last.tokens;
      }
    }
    return inner_->run(damaged, set, outputs);
  }
  support::Result<std::vector<double>> time(const plan::Plan &plan, int repeats) override {
    return inner_->time(plan, repeats);
  }

private:
  std::unique_ptr<Runner> inner_;
};

class LosingMachine : public Machine {
public:
  explicit LosingMachine(std::unique_ptr<Machine> inner) : inner_(std::move(inner)) {}
  config_cache::DeviceKey key() const override { return inner_->key(); }
  support::Result<void> load(exec::Inputs &inputs, InputSet set) override {
    return inner_->load(inputs, set);
  }
  support::Result<std::unique_ptr<Runner>> open(const package::KernelSet *kernels) override {
    auto runner = inner_->open(kernels);
    if (!runner)
      return runner.error();
    return std::unique_ptr<Runner>(std::make_unique<LosingRunner>(std::move(*runner)));
  }

private:
  std::unique_ptr<Machine> inner_;
};

TEST(MeasureServiceTest, ACandidateThatLosesOneTokenOfManyIsFoundByCounting) {
  Work work = makeWork();
  work.classes = {{"long", {test::levelTree({1, 2}, {30'000, 20})}}};
  for (const bool isLosing : {false, true}) {
    auto service = makeMeasureService(work, [&]() -> support::Result<std::unique_ptr<Machine>> {
      auto machine = openCpu(work.variant, Scalar::kernel(), 1);
      if (!isLosing || !machine)
        return machine;
      return std::unique_ptr<Machine>(std::make_unique<LosingMachine>(std::move(*machine)));
    });
    ask(**service, {{"op", "class"}, {"class", 0}});
    ask(**service, {{"op", "prepare"}, {"id", "a"}, {"config", config(spec::Partition::Node, 512)}});
    const json checked = ask(**service, {{"op", "check"}, {"id", "a"}}).head;
    EXPECT_EQ(checked["right"], !isLosing) << checked["why"];
    if (isLosing) { // which the oracle's values do not tell
      EXPECT_EQ(checked["why"].get<std::string>().substr(0, 43),
                "counting inputs: query 0, head 0: the token");
    }
  }
}

TEST(MeasureServiceTest, WhatIsNotThereIsAnError) {
  const Work work = makeWork();
  auto service = makeMeasureService(work, [&] { return openCpu(work.variant, Scalar::kernel(), 1); });
  ask(**service, {{"op", "class"}, {"class", 0}});
  EXPECT_EQ((*service)->handle({{{"op", "check"}, {"id", "b"}}, {}}).error().message,
            "candidate b is not prepared");
  ask(**service, {{"op", "prepare"}, {"id", "b"}, {"config", config(spec::Partition::Union, 0)}});
  ask(**service, {{"op", "forget"}, {"id", "b"}});
  EXPECT_FALSE((*service)->handle({{{"op", "check"}, {"id", "b"}}, {}}).ok());
  EXPECT_FALSE((*service)->handle({{{"op", "dance"}, {"id", "b"}}, {}}).ok());
  ask(**service, {{"op", "prepare"}, {"id", "b"}, {"config", config(spec::Partition::Union, 0)}});
  ask(**service, {{"op", "class"}, {"class", 1}}); // another class forgets all
  EXPECT_FALSE((*service)->handle({{{"op", "check"}, {"id", "b"}}, {}}).ok());
}

TEST(MeasureServiceTest, KernelsSurviveTheWay) {
  package::KernelSet kernels;
  kernels.arch = "sm_90a";
  kernels.config = *kernels::defaultConfig(Scalar::variant(), nullptr);
  for (const char *entry : {"one", "two"}) {
    package::Kernel kernel;
    kernel.entry = entry;
    kernel.cubin = std::string("\x7f"
                               "ELF\0",
                               5) +
                   entry;
    kernel.threads = 128;
    kernel.smemBytes = 4096;
    kernels.attend.push_back(kernel);
  }
  kernels.merge = kernels.attend[0];
  kernels.merge.entry = "merge";
  Message message{json::object(), {}};
  packKernels(kernels, message);
  const package::KernelSet again = unpackKernels(message, kernels.config);
  ASSERT_EQ(again.attend.size(), 2U);
  EXPECT_EQ(again.attend[1].entry, "two");
  EXPECT_EQ(again.attend[1].cubin, kernels.attend[1].cubin);
  EXPECT_EQ(again.attend[1].smemBytes, 4096);
  EXPECT_EQ(again.merge.entry, "merge");
  EXPECT_EQ(again.arch, "sm_90a");
}

} // namespace
} // namespace deft::measure
