#include "tools/deftc/bench/BenchKernels.h"
#include "tools/deftc/bench/BenchOwn.h"
#include "tools/deftc/common/Arguments.h"
#include "tools/deftc/common/Commands.h"
#include "tools/deftc/common/Progress.h"
#include "tuner/accounting/IoTable.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iomanip>
#include <ostream>
#include <sstream>

namespace deft::cli {
namespace {

using accounting::IoGroup;
using accounting::IoRow;
using nlohmann::json;

double terabytes(std::int64_t bytes) { return static_cast<double>(bytes) / 1e12; }

json toJson(const IoRow &row) {
  json object = {{"name", row.name},
                 {"shared_tb", row.sharedTb()},
                 {"query_tb", row.queryTb()},
                 {"paper_shared_tb", row.paperSharedTb},
                 {"paper_query_tb", row.paperQueryTb},
                 {"steps", row.io.steps},
                 {"runs", row.runs},
                 {"shared_partial_tb", terabytes(row.io.shared.partials)},
                 {"query_partial_tb", terabytes(row.io.query.partials)},
                 {"shared_queries_tb", terabytes(row.io.shared.queries)},
                 {"shared_masks_tb", terabytes(row.io.shared.masks)}};
  if (row.branches > 0)
    object["b"] = row.branches;
  return object;
}

json toJson(const std::vector<IoGroup> &table) {
  json object = {{"unit",
                  {{"query_heads", accounting::unit().ratio * accounting::unit().kvHeads},
                   {"kv_heads", accounting::unit().kvHeads},
                   {"head_dim", accounting::unit().tensors.k.dim},
                   {"element_bytes", accounting::unit().tensors.k.elementBytes()},
                   {"layers", accounting::kLayers}}}};
  json rules = json::object(), leftOut = json::array();
  for (const IoGroup &group : table) {
    json rows = json::array();
    for (const IoRow &row : group.rows)
      rows.push_back(toJson(row));
    object[group.key] = std::move(rows);
    rules[group.key] = group.rule;
    for (const std::string &name : group.leftOut)
      leftOut.push_back(name);
  }
  object["rules"] = std::move(rules);
  object["left_out"] = std::move(leftOut);
  return object;
}

std::string padded(const std::string &text, int width) {
  return text + std::string(std::max<std::size_t>(width, text.size()) - text.size(), ' ');
}

/// Breaks at spaces so that lines end before column 100.
std::string wrapped(const std::string &text) {
  std::istringstream words(text);
  std::string word, lines = "  ", line;
  while (words >> word) {
    if (line.size() + word.size() > 96) {
      lines += line + "\n  ";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return lines + line + "\n";
}

void printTable(const std::vector<IoGroup> &table, std::ostream &out) {
  out << "Bytes moved over whole decoding runs, TB: 32 heads, 32 layers, head dim 128, 2 bytes.\n"
         "shared: every token of the tree is read once (partition `flatten`, chunks of 128);\n"
         "query:  every query reads its own path (partition `query`).\n\n"
      << padded("", 20) << "   steps  shared  (paper)    query  (paper)  partials  masks GB\n";
  for (const IoGroup &group : table) {
    if (group.rows.empty())
      continue;
    out << group.key << ": " << group.rule << '\n' << std::fixed << std::setprecision(2);
    for (const IoRow &row : group.rows)
      out << "  " << padded(row.name, 18) << std::setw(8) << row.io.steps << std::setw(8) << row.sharedTb()
          << std::setw(9) << row.paperSharedTb << std::setw(9) << row.queryTb() << std::setw(9)
          << row.paperQueryTb << std::setw(10) << terabytes(row.io.shared.partials) << std::setw(10)
          << terabytes(row.io.shared.masks) * 1e3 << '\n';
    if (const std::string why = explainDifferences(group); !why.empty())
      out << wrapped(why);
  }
  out << "\n"
      << "partials: 16-bit results of single items that `flatten` writes and merges. The paper's column of\n"
         "that name counts scores and softmax of kernels that are not fused; fused ones never write these.\n";
  std::string leftOut;
  for (const IoGroup &group : table)
    for (const std::string &name : group.leftOut)
      leftOut += (leftOut.empty() ? "" : ", ") + name;
  if (!leftOut.empty())
    out << "left out, as no record was found: " << leftOut << "\n  (--workloads DIR names the folder)\n";
}

int benchIo(Context &context, const KernelBenchFlags &options) {
  if (const auto writable = checkOutput(context, options.json); !writable)
    return reportError(context, writable.error());
  if (const auto read = context.files.readsFolder(options.workloads); !read)
    return reportError(context, read.error());
  support::Result<std::vector<IoGroup>> table = [&] {
    Progress progress(context, "counting bytes");
    return accounting::countTable(options.workloads,
                                  [&](long long done, long long of) { progress.at(done, of); });
  }();
  if (!table)
    return reportError(context, table.error());
  if (options.json != "-")
    printTable(*table, context.out);
  return options.json.empty() ? kExitOk : writeOutput(context, options.json, toJson(*table).dump(2) + "\n");
}

/// Of the examples' specs.
constexpr const char *kWhereRowsAre =
    "The attentions of published rows are in the folder tests/bench of deftc's sources; no package has them.";

} // namespace

void addBenchCommand(CLI::App &app, Context &context) {
  CLI::App *bench = app.add_subcommand("bench", "Benchmarks, next to published figures");
  bench->require_subcommand(1);
  bench->footer(std::string("Examples:\n  deftc bench own llama3_8b --tree tree.json --workload few_shot\n"
                            "  deftc bench fasttree tests/bench/kernel_rows.deft --quick\n"
                            "  deftc bench all tests/bench/*.deft --workloads DIR --json rows.json\n") +
                kWhereRowsAre);
  const auto addSuite = [&](const char *name, const char *what, const char *spec,
                            std::vector<BenchSuite> suites, bool withVariants) {
    CLI::App *suite = bench->add_subcommand(name, what);
    auto flags = std::make_shared<KernelBenchFlags>();
    addKernelFlags(suite, *flags);
    suite->footer(std::string("Example:\n  deftc bench ") + name + " " + spec + " --json rows.json\n" +
                  kWhereRowsAre);
    context.onRun(suite, [&context, flags, suites = std::move(suites), withVariants] {
      return benchKernels(context, *flags, suites, withVariants);
    });
    return std::pair(suite, flags);
  };
  const BenchSuite fasttree{"fasttree", bench::fasttreeRows()}, deftRows{"deft", bench::deftRows()},
      flat{"flat", bench::flatRows()}, other{"other", bench::otherRows()},
      windows{"windows", bench::windowRows()}, ragged{"ragged", bench::raggedRows()},
      latent{"latent", bench::latentRows()};
  addSuite("fasttree", "FastTree's trees on the GPU, with the best published kernels",
           "tests/bench/kernel_rows.deft", {fasttree}, false);
  addSuite("flat", "Trees without sharing on the GPU, with the best flat kernels",
           "tests/bench/kernel_rows.deft", {flat}, false);
  addSuite("other", "Other heads, head dims and trees on the GPU, with the floor",
           "tests/bench/other_rows.deft", {other}, false);
  addSuite("windows", "Sliding windows over contexts of four lengths on the GPU, with the floor",
           "tests/bench/window_rows.deft", {windows}, false);
  addSuite("ragged", "Prompts, appends and mixed batches on the GPU, with the floor",
           "tests/bench/ragged_rows.deft", {ragged}, false);
  addSuite("latent", "Latent caches (MLA) on the GPU, with the floor", "tests/bench/latent_rows.deft",
           {latent}, false);
  addSuite("variants", "The cost of masks, scores, sigmoid and bf16 on the GPU",
           "tests/bench/variant_rows.deft", {}, true);
  addSuite("all", "All of these in one report", "tests/bench/*.deft --workloads DIR",
           {fasttree, deftRows, flat, other, windows, ragged, latent}, true);
  addBenchOwn(*bench, context);
  const auto [deft, flags] = addSuite("deft", "DeFT's workloads on the GPU, or its table of bytes",
                                      "tests/bench/kernel_rows.deft", {deftRows}, false);
  auto io = std::make_shared<bool>(false);
  deft->add_flag("--io", *io,
                 "Bytes moved over decoding runs, counted from the plans of their steps; no GPU");
  deft->footer(std::string("Examples:\n"
                           "  deftc bench deft --io --workloads DIR --json io.json     (DIR holds recorded "
                           "workloads)\n"
                           "  deftc bench deft tests/bench/kernel_rows.deft --workloads DIR\n") +
               kWhereRowsAre);
  context.onRun(deft, [&context, io, flags = flags, deftRows] {
    return *io ? benchIo(context, *flags) : benchKernels(context, *flags, {deftRows}, false);
  });
}

} // namespace deft::cli
