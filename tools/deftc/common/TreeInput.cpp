#include "tools/deftc/common/TreeInput.h"

#include "compiler/support/OpenedFile.h"
#include "runtime/tree/TreeFile.h"
#include "tools/deftc/common/Arguments.h"
#include "tools/deftc/common/CommandWalk.h"
#include "tools/deftc/common/Progress.h"

#include <CLI/CLI.hpp>

namespace deft::cli {

void addTreeOptions(CLI::App &command, TreeOptions &options) {
  CLI::Option *tree = command.add_option("--tree", options.tree, "A tree file (JSON)");
  CLI::Option *workload =
      command.add_option("--workload", options.workload, "NAME or NAME:KEY=VALUE,...; see deftc workloads")
          ->type_name(kWorkloadName);
  tree->excludes(workload);
  command.add_option("--workloads", options.workloads, "The folder of recorded workloads")->excludes(tree);
  command.add_option("--step", options.step, "Step of the workload, from 1")
      ->check(atLeast(1))
      ->excludes(tree);
  command.add_option("--seed", options.seed, "Seed of the workload")->check(seed());
}

bool isTreeFile(const std::string &path) {
  constexpr std::size_t kMost = 4096;
  return support::beginningOf(path, kMost).find("\"deftc-tree\"") != std::string::npos;
}

support::Result<workload::Workload> openWorkload(Context &context, const TreeOptions &options) {
  const Underway underway(context, "making the tree");
  auto workload = workload::make(options.workload, options.seed, options.workloads);
  if (workload && options.step > 1)
    if (auto sought = workload->seek(options.step); !sought)
      return sought.error();
  return workload;
}

support::Result<NamedTree> openTree(Context &context, const TreeOptions &options) {
  if (!options.isGiven())
    return support::Error{support::ErrorCode::Usage, "no tree is given",
                          "give --tree FILE or --workload NAME"};
  if (auto read = context.files.reads(options.tree); !read)
    return read.error();
  if (auto read = context.files.readsFolder(options.workloads); !read)
    return read.error();
  if (options.workload.empty()) {
    const Underway underway(context, "reading the tree");
    auto document = tree::readTreeDocument(options.tree);
    if (!document)
      return document.error();
    return NamedTree{std::filesystem::path(options.tree).filename().string(), std::move(document->tree),
                     std::move(document->names)};
  }
  const auto workload = openWorkload(context, options);
  if (!workload)
    return workload.error();
  const std::string step = workload->steps() > 1 ? ", step " + std::to_string(workload->step()) : "";
  return NamedTree{workload->name() + step, workload->tree(), {}};
}

} // namespace deft::cli
