#include "tools/deftc/bench/OwnRows.h"

#include "tools/deftc/common/ProgramInput.h"
#include "tuner/bench/KernelBench.h"

#include <algorithm>
#include <filesystem>

namespace deft::cli {

support::Result<OwnRows> OwnRows::make(Context &context, const std::vector<std::string> &specs,
                                       const std::vector<std::string> &workloads,
                                       const std::vector<std::string> &treeFiles) {
  OwnRows own;
  std::vector<bench::KernelRow> trees;
  for (const std::string &workload : workloads)
    trees.push_back({.name = own.keep(workload), .workload = own.keep(workload), .attention = {}});
  for (const std::string &file : treeFiles) {
    if (auto read = context.files.reads(file); !read)
      return read.error();
    const std::string name = std::filesystem::path(file).filename().string();
    trees.push_back({.name = own.keep(name), .workload = {}, .attention = {}, .treeFile = own.keep(file)});
  }
  for (const std::string &spec : specs) {
    const auto program = openProgram(context, spec, "");
    if (!program)
      return program.error();
    const std::string_view attention = own.keep(program->variant().name);
    // Rows have their attention by its name, so both would be the first one's.
    const auto isAlike = [&](const bench::KernelRow &row) { return row.attention == attention; };
    if (std::any_of(own.rows_.begin(), own.rows_.end(), isAlike))
      return support::Error{support::ErrorCode::Usage,
                            "`" + spec + "` has an attention `" + std::string(attention) +
                                "`, and so does an earlier one",
                            "give them to two calls, or to `deftc compare`"};
    own.subjects_.push_back({spec, bench::valuesWithoutDefault(program->variant())});
    for (bench::KernelRow row : trees) {
      if (specs.size() > 1)
        row.name = own.keep(std::string(row.name) + ", " + std::string(attention));
      row.attention = attention;
      own.rows_.push_back(row);
    }
  }
  return own;
}

} // namespace deft::cli
