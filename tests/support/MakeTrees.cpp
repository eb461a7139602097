#include "runtime/tree/TreeFile.h"
#include "tests/support/TestTrees.h"

#include <filesystem>
#include <iostream>
#include <string_view>

/// deft_make_trees FOLDER [--bench]: writes the test trees, or the trees of real size, one file each.
int main(int argc, char **argv) {
  const bool isBench = argc == 3 && std::string_view(argv[2]) == "--bench";
  if (argc != 2 && !isBench) {
    std::cerr << "usage: deft_make_trees FOLDER [--bench]\n";
    return 2;
  }
  std::filesystem::create_directories(argv[1]);
  for (const auto &[name, tree] : isBench ? deft::test::benchTrees() : deft::test::testTrees()) {
    const auto path = std::filesystem::path(argv[1]) / (name + ".json");
    if (auto written = deft::tree::writeTreeFile(path.string(), tree); !written) {
      std::cerr << "error: " << written.error().message << '\n';
      return 1;
    }
  }
  return 0;
}
