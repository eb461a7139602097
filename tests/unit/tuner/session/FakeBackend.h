#pragma once

#include "compiler/kernels/DefaultConfig.h"
#include "runtime/program/CpuConfig.h"
#include "tests/support/Forest.h"
#include "tests/support/ScalarKernel.h"
#include "tuner/session/Tune.h"

#include <chrono>
#include <cmath>
#include <csignal>
#include <functional>
#include <random>
#include <thread>
#include <unistd.h>

/// A machine whose results are right and whose times are made up.
namespace deft::test {

using Scalar = ScalarKernel<4, 2, 16>;

struct FakeBehaviour {
  /// Microseconds of a plan.
  std::function<double(const plan::Plan &)> time;
  /// Called before a plan is run or timed: may fault, hang, or return false, which makes the result wrong.
  std::function<bool(const plan::Plan &)> run = [](const plan::Plan &) { return true; };
  double noise = 0;        ///< relative
  double sleepSeconds = 0; ///< of each timing
};

class FakeRunner : public measure::Runner {
public:
  FakeRunner(std::unique_ptr<measure::Runner> real, const FakeBehaviour &behaviour, std::mt19937 &engine)
      : real_(std::move(real)), behaviour_(behaviour), engine_(engine) {}

  int blocks() const override { return real_->blocks(); }

  support::Result<void> run(const plan::Plan &plan, measure::InputSet set, exec::Outputs &outputs) override {
    const bool isRight = behaviour_.run(plan);
    auto ran = real_->run(plan, set, outputs);
    if (!isRight)
      outputs.out[0] ^= 0x4000;
    return ran;
  }

  support::Result<std::vector<double>> time(const plan::Plan &plan, int repeats) override {
    (void)behaviour_.run(plan);
    if (behaviour_.sleepSeconds > 0)
      std::this_thread::sleep_for(std::chrono::duration<double>(behaviour_.sleepSeconds));
    std::vector<double> us;
    for (int i = 0; i < repeats; ++i)
      us.push_back(behaviour_.time(plan) *
                   std::exp(behaviour_.noise * std::normal_distribution<double>()(engine_)));
    return us;
  }

private:
  std::unique_ptr<measure::Runner> real_;
  const FakeBehaviour &behaviour_;
  std::mt19937 &engine_;
};

class FakeMachine : public measure::Machine {
public:
  FakeMachine(std::unique_ptr<measure::Machine> real, FakeBehaviour behaviour)
      : real_(std::move(real)), behaviour_(std::move(behaviour)), engine_(static_cast<unsigned>(::getpid())) {
  } // another process has other noise

  config_cache::DeviceKey key() const override {
    return {config_cache::DeviceKey::Kind::Cpu, "x86-64-v4", 512, 1, "fake"};
  }
  support::Result<void> load(exec::Inputs &inputs, measure::InputSet set) override {
    return real_->load(inputs, set);
  }
  support::Result<std::unique_ptr<measure::Runner>> open(const package::KernelSet *kernels) override {
    auto runner = real_->open(kernels);
    if (!runner)
      return runner.error();
    return std::unique_ptr<measure::Runner>(
        std::make_unique<FakeRunner>(std::move(*runner), behaviour_, engine_));
  }

private:
  std::unique_ptr<measure::Machine> real_;
  FakeBehaviour behaviour_;
  std::mt19937 engine_;
};

inline session::Backend fakeBackend(const spec::Variant &variant, FakeBehaviour behaviour) {
  session::Backend backend;
  backend.open = [&variant, behaviour]() -> support::Result<std::unique_ptr<measure::Machine>> {
    auto real = measure::openCpu(variant, Scalar::kernel(), 1);
    if (!real)
      return real.error();
    return std::unique_ptr<measure::Machine>(std::make_unique<FakeMachine>(std::move(*real), behaviour));
  };
  backend.untuned =
      [&variant](const config_cache::DeviceKey &) -> support::Result<std::vector<config::Config>> {
    auto config = program::cpuConfig(variant, 1);
    if (!config)
      return config.error();
    return std::vector{std::move(*config)};
  };
  return backend;
}

/// Two classes of trees, small enough that sweeping the caches is all that takes time.
inline std::vector<session::Sample> fakeSamples() {
  return {{"few", 0, levelTree({1, 4}, {40, 9}), false},
          {"few again", 0, levelTree({1, 4}, {42, 9}), false},
          {"held", 0, levelTree({1, 4}, {41, 9}), true},
          {"flat", 0, levelTree({6}, {60}), false}};
}

/// What a plan takes where `query` with chunks of 64 is twice as fast as the rest.
inline double landscape(const plan::Plan &plan) {
  const double partition = plan.partition == spec::Partition::Query ? 0.5 : 1;
  return 100 * partition * (1 + 0.1 * std::abs(std::log2(std::max(plan.chunkTokens, 16) / 64.0)));
}

} // namespace deft::test
