#include "tuner/session/NamedSamples.h"

#include "tuner/bench/KernelRows.h"
#include "tuner/workload/Families.h"

#include <algorithm>
#include <set>

namespace deft::session {

using support::Result;

namespace {

Result<void> append(Result<std::vector<workload::FamilyTree>> trees, std::vector<Sample> &samples) {
  if (!trees)
    return trees.error();
  for (workload::FamilyTree &tree : *trees)
    samples.push_back({tree.name, tree.seed, std::move(tree.tree), tree.isHeldOut});
  return {};
}

/// Each tree once, whatever the attention of its row.
Result<void> appendRows(const std::string &recordsFolder, std::vector<Sample> &samples) {
  std::set<std::string_view> names;
  for (const auto rows : {bench::fasttreeRows(), bench::deftRows(), bench::flatRows()})
    for (const bench::KernelRow &row : rows) {
      const bool isRecorded =
          row.workload.starts_with("reasoning_") || row.workload.starts_with("speculative_");
      if ((isRecorded && recordsFolder.empty()) || !names.insert(row.workload).second)
        continue;
      auto workload = workload::make(std::string(row.workload), 0, recordsFolder);
      if (!workload)
        return workload.error();
      samples.push_back({std::string(row.workload), 0, workload->tree(), false});
    }
  return {};
}

} // namespace

Result<std::vector<Sample>> namedSamples(std::string_view name, std::uint64_t seed,
                                         const std::string &recordsFolder) {
  const auto families = workload::families();
  const bool isFamily = std::any_of(families.begin(), families.end(),
                                    [&](const workload::Family &family) { return family.name == name; });
  std::vector<Sample> samples;
  Result<void> appended;
  if (name == "rows")
    appended = appendRows(recordsFolder, samples);
  else if (isFamily)
    appended = append(workload::familyTrees(name), samples);
  else if (name != "all")
    appended = append(workload::workloadTrees(std::string(name), seed, recordsFolder), samples);
  else
    for (std::size_t i = 0; i < families.size() && appended; ++i)
      appended = append(workload::familyTrees(families[i].name), samples);
  if (!appended)
    return appended.error();
  return samples;
}

} // namespace deft::session
