#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

/// What this machine can do, and how to mend what is missing.
namespace deft::doctor {

/// One line of the report.
struct Finding {
  std::string name;
  bool ok = false;
  std::string text;
  std::string mend; ///< how to get what is missing; empty when nothing is
  nlohmann::json details = nlohmann::json::object();
};

struct Report {
  std::vector<Finding> findings; ///< compiler, cpu, gpu, nvrtc, cache
  bool runsOnCpu = false;
  bool runsOnGpu = false;

  bool isUsable() const { return runsOnCpu || runsOnGpu; }
};

/// Looks. Loads the driver and NVRTC where they are there.
Report examine();

nlohmann::json toJson(const Report &report);

} // namespace deft::doctor
