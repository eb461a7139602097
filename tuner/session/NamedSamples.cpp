#include "tuner/session/NamedSamples.h"

#include "tuner/bench/KernelRows.h"
#include "tuner/workload/Families.h"

#include <algorithm>
#include <iterator>
#include <span>

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

using Rows = std::span<const bench::KernelRow>;

Result<void> appendRows(const spec::Variant &variant, const std::string &recordsFolder,
                        std::vector<Sample> &samples) {
  const Rows tables[] = {bench::fasttreeRows(), bench::deftRows(), bench::flatRows()};
  std::string heads = "h" + std::to_string(variant.queryHeads) + "_" + std::to_string(variant.kvHeads);
  if (std::none_of(std::begin(tables), std::end(tables), [&](const Rows &rows) {
        return std::any_of(rows.begin(), rows.end(),
                           [&](const bench::KernelRow &row) { return row.attention == heads; });
      }))
    heads = "h32_8";
  for (const Rows &rows : tables)
    for (const bench::KernelRow &row : rows) {
      const bool isRecorded =
          row.workload.starts_with("reasoning_") || row.workload.starts_with("speculative_");
      if (row.attention != heads || (isRecorded && recordsFolder.empty()))
        continue;
      auto workload = workload::make(std::string(row.workload), 0, recordsFolder);
      if (!workload)
        return workload.error();
      samples.push_back({std::string(row.workload), 0, workload->tree(), false});
    }
  return {};
}

} // namespace

Result<std::vector<Sample>> namedSamples(std::string_view name, const spec::Variant &variant,
                                         std::uint64_t seed, const std::string &recordsFolder) {
  const auto families = workload::families();
  const bool isFamily =
      std::any_of(families.begin(), families.end(),
                  [&](const workload::WorkloadFamily &family) { return family.name == name; });
  std::vector<Sample> samples;
  Result<void> appended;
  if (name == "rows")
    appended = appendRows(variant, recordsFolder, samples);
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
