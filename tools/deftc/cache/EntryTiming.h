#pragma once

#include "runtime/program/Program.h"
#include "tools/deftc/common/Context.h"
#include "tools/deftc/common/DeviceInput.h"
#include "tuner/regret/TimedRegret.h"

#include <CLI/CLI.hpp>

#include <memory>
#include <optional>
#include <string>

/// Entries of one device, and a spec whose entries are timed: what `regret` and `renew` have in common.
namespace deft::cli {

struct EntryTimingOptions {
  DeviceOptions device;
  std::string input, variant, config, pages = "scattered";
  regret::TimingOptions timing;
};
/// All but the spec itself.
void addEntryTimingOptions(CLI::App &command, EntryTimingOptions &options);

class EntryTiming {
public:
  /// Without an input there is no program, and nothing will be timed.
  static support::Result<EntryTiming> open(Context &context, const EntryTimingOptions &options);

  const ChosenDevice &device() const { return device_; }
  const config_cache::ConfigCache &configs() const { return *configs_; }
  const std::optional<program::Program> &program() const { return program_; }
  /// Of what the request asks for; its device and the untuned choice are filled in here.
  support::Result<regret::RegretReport> report(Context &context, regret::RegretRequest request) const;

private:
  EntryTiming(ChosenDevice device, regret::TimingOptions timing)
      : device_(std::move(device)), timing_(std::move(timing)) {}
  support::Result<std::vector<config::Config>> untuned(const config_cache::VariantSignature &signature) const;

  ChosenDevice device_;
  regret::TimingOptions timing_;
  std::optional<program::Program> program_;
  std::shared_ptr<const config_cache::ConfigCache> configs_;
};

} // namespace deft::cli
