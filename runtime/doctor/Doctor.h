#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

/// The abilities of this machine, and remedies for missing parts.
namespace deft::doctor {

/// One line of the report.
struct Finding {
  std::string name;
  bool ok = false;
  std::string text;
  std::string mend; ///< how to get the missing part; empty if nothing is missing
  nlohmann::json details = nlohmann::json::object();
};

struct Report {
  std::vector<Finding> findings; ///< compiler, cpu, gpu, nvrtc, cache
  bool runsOnCpu = false;
  bool runsOnGpu = false;

  bool isUsable() const { return runsOnCpu || runsOnGpu; }
};

/// Examines the machine. Loads the driver and NVRTC if they exist.
Report examine();

nlohmann::json toJson(const Report &report);

} // namespace deft::doctor
