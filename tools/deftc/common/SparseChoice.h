#pragma once

#include "runtime/config_cache/SparseEntry.h"
#include "runtime/program/Program.h"
#include "tools/deftc/common/DeviceInput.h"

#include <nlohmann/json_fwd.hpp>

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace deft::cli {

/// How a GPU runs the sparse layers of a variant that selects, and where that was tuned.
struct SparseChoice {
  struct Lists {
    int budget = 0;
    std::vector<config_cache::TimedCut> cuts; ///< none: cut by the rule
    std::string path;                         ///< of the file that they stand in
  };

  config::PhaseConfig tile;
  bool isPackaged = false; ///< the tile is a package's, whatever was tuned
  std::string path;        ///< of the file that the tile stands in; empty: by the rule
  std::vector<Lists> lists;
};

/// None where there is nothing to choose: on a processor, or where no kernel can read lists.
std::optional<SparseChoice> sparseChoice(const program::Program &program, const ChosenDevice &device,
                                         const config_cache::Places &places);

/// "items of 1,024 tokens for 8 queries, the rule's for 11 numbers of queries".
std::string cutsText(const std::vector<config_cache::TimedCut> &cuts);

/// A line for the tile and one for each budget.
void print(const SparseChoice &choice, std::ostream &out);
nlohmann::json toJson(const SparseChoice &choice);

} // namespace deft::cli
