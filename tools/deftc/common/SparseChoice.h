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

/// How a GPU runs the sparse layers of a variant that selects, and the origin of these choices.
struct SparseChoice {
  struct Lists {
    int budget = 0;
    std::vector<config_cache::TimedCut> cuts; ///< none: the rule's cut
    std::string path;                         ///< of the file that contains the cuts
  };

  config::PhaseConfig tile;
  bool isPackaged = false; ///< the tile comes from a package, which overrides tuned ones
  std::string path;        ///< of the file that contains the tile; empty: the rule's tile
  std::vector<Lists> lists;
};

/// None if there is no choice: on a processor, or if no kernel can read lists.
std::optional<SparseChoice> sparseChoice(const program::Program &program, const ChosenDevice &device,
                                         const config_cache::Places &places);

/// "items of 1,024 tokens for 8 queries, the rule's for 11 numbers of queries".
std::string cutsText(const std::vector<config_cache::TimedCut> &cuts);

/// Prints a line for the tile and one for each budget.
void print(const SparseChoice &choice, std::ostream &out);
nlohmann::json toJson(const SparseChoice &choice);

} // namespace deft::cli
