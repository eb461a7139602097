#pragma once

#include "compiler/config/Config.h"
#include "compiler/spec/Variant.h"
#include "runtime/plan/Planner.h"
#include "runtime/reference/Check.h"
#include "runtime/tree/TreeSummary.h"

#include <nlohmann/json_fwd.hpp>

#include <iosfwd>
#include <optional>
#include <string>

namespace deft::cli {

/// Everything that one `deftc run` found out.
struct RunReport {
  spec::Variant variant;
  std::string treePath;
  tree::TreeSummary tree;
  config::Config config;
  plan::PlanSummary plan;
  double planUs = 0;   ///< host time of making the plan
  std::string backend; ///< "cuda" or "cpu"
  std::string device;  ///< its name, or "2 threads"
  std::string pages;   ///< "in-order" or "scattered"
  std::uint64_t seed = 0;

  int repeats = 0;
  double medianUs = 0, fastestUs = 0, slowestUs = 0;
  std::optional<double> floorUs; ///< where the device's ceilings are known
  std::string ceilingModel;

  std::optional<reference::CheckReport> check;

  double cacheBytes() const; ///< K and V of the tokens that some query sees
  double flops() const;      ///< of both products, over the pairs that the tree shows
};

void printReport(const RunReport &report, std::ostream &out);
nlohmann::json toJson(const RunReport &report);

} // namespace deft::cli
