#include "compiler/kernels/Family.h"
#include "compiler/target/Target.h"
#include "runtime/config_cache/DeviceKey.h"
#include "runtime/exec/cpu/SharedObject.h"
#include "tools/deftc/common/Commands.h"
#include "tools/deftc/common/Gpus.h"
#include "tools/deftc/common/Words.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iomanip>
#include <ostream>
#include <thread>

namespace deft::cli {
namespace {

using nlohmann::json;

/// A GPU as this command shows it.
struct DeviceRow : FoundGpu {
  std::string capability() const { return std::to_string(facts.major) + "." + std::to_string(facts.minor); }
  std::vector<std::string> families() const {
    std::vector<std::string> names;
    if (target)
      for (const kernels::Family *family : kernels::familiesOn(target))
        names.insert(names.begin(), std::string(family->name)); // newer ones first
    return names;
  }
  /// A family has kernels to choose from where they were measured; for other GPUs kernels are compiled and
  /// their resources are checked. Those of latent caches have some everywhere: no schedule names any.
  bool isMeasured() const {
    if (!target)
      return false;
    const auto families = kernels::familiesOn(target);
    return std::any_of(families.begin(), families.end(), [](const kernels::Family *family) {
      return family->defaults && family->values != kernels::Values::InKeys;
    });
  }
  std::string note() const {
    if (facts.major < 8)
      return "too old: 8.0 or newer is needed";
    if (!target)
      return "newer than this deftc";
    return isMeasured() ? "supported" : "supported, not tried on this architecture";
  }
};

std::string cudaVersion(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// What runs where there is no GPU.
std::string cpuLine() {
  const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  const int level = exec::hostIsaLevel();
  return "CPU: " + config_cache::cpuModelName() + ", " + std::to_string(threads) +
         (threads == 1 ? " thread, " : " threads, ") +
         (level > 0 ? "x86-64-v" + std::to_string(level) + ": `--backend cpu` runs here"
                    : "below x86-64-v3: no kernels run on it");
}

json cpuJson() {
  return {{"model", config_cache::cpuModelName()},
          {"threads", std::max(1u, std::thread::hardware_concurrency())},
          {"isa_level", exec::hostIsaLevel()},
          {"supported", exec::hostIsaLevel() > 0}};
}

void printTable(std::ostream &out, const std::vector<DeviceRow> &rows) {
  const auto familiesOf = [](const DeviceRow &row) { return row.target ? joined(row.families()) : "none"; };
  std::size_t nameWidth = 4, familiesWidth = 8;
  for (const DeviceRow &row : rows) {
    nameWidth = std::max(nameWidth, row.facts.name.size());
    familiesWidth = std::max(familiesWidth, familiesOf(row).size());
  }
  const auto line = [&](const std::string &index, const std::string &name, const std::string &capability,
                        const std::string &arch, const std::string &units, const std::string &memory,
                        const std::string &families, const std::string &note) {
    out << std::right << std::setw(5) << index << "  " << std::left
        << std::setw(static_cast<int>(nameWidth) + 2) << name << std::setw(12) << capability << std::setw(9)
        << arch << std::right << std::setw(5) << units << std::setw(9) << memory << "  " << std::left
        << std::setw(static_cast<int>(familiesWidth) + 2) << families << note << '\n';
  };
  line("index", "name", "capability", "kernels", "SMs", "memory", "families", "");
  for (const DeviceRow &row : rows)
    line(std::to_string(row.facts.ordinal), row.facts.name, row.capability(),
         row.target ? std::string(row.target->arch) : "none", std::to_string(row.facts.multiprocessors),
         std::to_string(row.facts.memoryBytes >> 30) + " GiB", familiesOf(row), row.note());
}

json toJson(const DeviceRow &row) {
  return {{"index", row.facts.ordinal},
          {"name", row.facts.name},
          {"compute_capability", {row.facts.major, row.facts.minor}},
          {"arch", row.target ? json(row.target->arch) : json(nullptr)},
          {"multiprocessors", row.facts.multiprocessors},
          {"memory_bytes", row.facts.memoryBytes},
          {"l2_bytes", row.facts.l2Bytes},
          {"families", row.families()},
          {"supported", row.target != nullptr},
          {"measured", row.isMeasured()},
          {"note", row.note()}};
}

int devices(Context &context, bool asJson) {
  const auto driver = device::Driver::load();
  std::vector<DeviceRow> rows;
  if (driver) {
    auto gpus = findGpus(**driver);
    if (!gpus)
      return reportError(context, gpus.error());
    for (FoundGpu &gpu : *gpus)
      rows.push_back({std::move(gpu)});
  }
  const bool isUsable =
      std::any_of(rows.begin(), rows.end(), [](const DeviceRow &row) { return row.target != nullptr; });
  const int code = isUsable ? kExitOk : kExitEnvironment;
  if (asJson) {
    json report{{"gpus", json::array()}, {"cpu", cpuJson()}};
    for (const DeviceRow &row : rows)
      report["gpus"].push_back(toJson(row));
    if (driver)
      report["driver_cuda"] = cudaVersion((*driver)->version());
    else
      report["why_no_gpu"] = driver.error().message;
    context.out << report.dump(2) << '\n';
    return code;
  }
  if (driver) {
    printTable(context.out, rows);
    context.out << "driver for CUDA " << cudaVersion((*driver)->version()) << '\n';
  } else {
    context.out << "no GPU: " << driver.error().message << '\n';
  }
  context.out << cpuLine() << '\n';
  return code;
}

} // namespace

void addDevicesCommand(CLI::App &app, Context &context) {
  CLI::App *command =
      app.add_subcommand("devices", "List the GPUs of this machine and the kernels that each gets");
  auto asJson = std::make_shared<bool>(false);
  command->add_flag("--json", *asJson, "Print JSON");
  command->footer(
      "Example:\n  deftc devices\nThe exit code is 0 if kernels run on one of the GPUs, and 3 otherwise.");
  context.onRun(command, [&context, asJson] { return devices(context, *asJson); });
}

} // namespace deft::cli
