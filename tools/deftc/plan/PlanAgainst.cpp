#include "tools/deftc/plan/PlanAgainst.h"

#include "compiler/spec/Names.h"
#include "compiler/support/NearestName.h"
#include "tools/deftc/common/Words.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace deft::cli {

using support::Result;

namespace {

/// Sets an option; a text says what it may be instead, an empty one that it is set.
using Setter = std::string (*)(PlanOptions &, const std::string &);

template <std::string PlanOptions::*member>
std::string setText(PlanOptions &options, const std::string &value) {
  options.*member = value;
  return "";
}

std::string setNumber(int &to, const std::string &value, int least, int most) {
  int number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < least || number > most)
    return "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
  to = number;
  return "";
}

std::string setPartition(PlanOptions &options, const std::string &value) {
  const std::vector<std::string> names = spec::partitionNames();
  if (std::find(names.begin(), names.end(), value) == names.end())
    return joined(names, " or ");
  options.partition = value;
  return "";
}

std::string setChunk(PlanOptions &options, const std::string &value) {
  return setNumber(options.chunk, value, 0, 1 << 30);
}

std::string setBlocks(PlanOptions &options, const std::string &value) {
  return setNumber(options.blocks, value, 1, kMostPlanBlocks);
}

std::string setStep(PlanOptions &options, const std::string &value) {
  return setNumber(options.tree.step, value, 1, 1 << 30);
}

/// A tree out of a file takes the place of a workload's, and the other way round.
std::string setTree(PlanOptions &options, const std::string &value) {
  options.tree.workload.clear();
  options.tree.tree = value;
  return "";
}

std::string setWorkload(PlanOptions &options, const std::string &value) {
  options.tree.tree.clear();
  options.tree.workload = value;
  return "";
}

/// A device takes the place of an architecture, and the other way round.
std::string setArch(PlanOptions &options, const std::string &value) {
  options.device = {};
  options.arch = value;
  return "";
}

std::string setDevice(PlanOptions &options, const std::string &value) {
  options.arch.clear();
  options.device.device = value;
  options.device.backend.clear();
  return "";
}

std::string setBackend(PlanOptions &options, const std::string &value) {
  if (value != "cpu" && value != "cuda")
    return "cpu or cuda";
  options.arch.clear();
  options.device.device.clear();
  options.device.backend = value;
  return "";
}

struct Named {
  const char *name;
  Setter set;
};
constexpr std::array kNamed = {Named{"partition", setPartition},
                               Named{"chunk", setChunk},
                               Named{"tree", setTree},
                               Named{"workload", setWorkload},
                               Named{"step", setStep},
                               Named{"spec", setText<&PlanOptions::input>},
                               Named{"variant", setText<&PlanOptions::variant>},
                               Named{"config", setText<&PlanOptions::config>},
                               Named{"arch", setArch},
                               Named{"device", setDevice},
                               Named{"backend", setBackend},
                               Named{"blocks", setBlocks}};

} // namespace

std::vector<std::string> againstNames() {
  std::vector<std::string> names;
  for (const Named &named : kNamed)
    names.emplace_back(named.name);
  return names;
}

Result<PlanOptions> againstOptions(const PlanOptions &first) {
  PlanOptions second = first;
  second.against.clear();
  for (const std::string &given : first.against) {
    const std::size_t equals = given.find('=');
    const std::string name = given.substr(0, equals);
    if (equals == std::string::npos || equals + 1 == given.size())
      return support::Error{support::ErrorCode::Usage, "--against `" + given + "` is not NAME=VALUE",
                            "for example --against partition=node"};
    const auto *found =
        std::find_if(kNamed.begin(), kNamed.end(), [&](const Named &named) { return name == named.name; });
    if (found == kNamed.end()) {
      const std::string near = support::didYouMean(name, againstNames());
      return support::Error{support::ErrorCode::Usage, "--against cannot change `" + name + "`",
                            near.empty() ? "it takes " + joined(againstNames()) : near};
    }
    if (const std::string wanted = found->set(second, given.substr(equals + 1)); !wanted.empty())
      return support::Error{support::ErrorCode::Usage, "--against `" + given + "` has a wrong value",
                            name + " is " + wanted};
  }
  return second;
}

} // namespace deft::cli
