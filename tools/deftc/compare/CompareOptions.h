#pragma once

#include "tools/deftc/common/TreeInput.h"

#include <string>
#include <vector>

namespace deft::cli {

/// What a user asks of `deftc compare`.
struct CompareOptions {
  std::vector<std::string> inputs; ///< specs, packages and tree files, in any order
  TreeOptions tree;
  std::string backend, config, pages = "in-order", json;
  std::vector<std::string> partitions; ///< empty: all
  std::vector<std::string> params;
  int rounds = 0;  ///< 0: as many as fit the time
  int threads = 0; ///< of the CPU; 0: all
  bool isChecked = false;
};

} // namespace deft::cli
