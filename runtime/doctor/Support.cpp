#include "runtime/doctor/Support.h"

#include "compiler/kernels/DefaultConfig.h"
#include "compiler/kernels/SparsePhase.h"
#include "compiler/spec/CompileSpec.h"
#include "runtime/doctor/Declared.h"
#include "runtime/doctor/Features.h"

#include <algorithm>
#include <set>
#include <sstream>

namespace deft::doctor {
namespace {

using nlohmann::json;

/// The feature's attention, or the checker's first finding.
support::Result<spec::Variant> variantOf(const Feature &feature) {
  support::SourceManager sources;
  const std::uint32_t file = sources.add(std::string(feature.name), std::string(feature.spec));
  support::DiagnosticSink sink;
  const auto imports = [](const std::string &, const std::string &) -> support::Result<spec::ImportedFile> {
    return support::Error{support::ErrorCode::Internal, "features import nothing", {}};
  };
  std::vector<spec::Variant> variants = spec::compileSpec(sources, file, imports, sink);
  if (variants.size() != 1)
    return support::Error{support::ErrorCode::Diagnostics,
                          sink.diagnostics().empty() ? "" : sink.diagnostics().front().message,
                          {}};
  return std::move(variants.front());
}

json refused(const support::Error &error) {
  return {{"ok", false}, {"why", error.hint.empty() ? error.message : error.message + "; " + error.hint}};
}

/// Null target: the processor.
json cellOf(const support::Result<spec::Variant> &variant, const target::Target *target) {
  if (!variant)
    return refused(variant.error());
  const auto configs = kernels::defaultConfigs(*variant, target);
  if (!configs)
    return refused(configs.error());
  std::set<std::string> families;
  for (const config::Config &config : *configs)
    for (const config::PhaseConfig &phase : config.phases)
      families.emplace(kernels::familyOf(phase).name);
  if (target && variant->select) {
    const auto sparse = kernels::sparsePhase(kernels::KernelShape::of(*variant), *target);
    if (!sparse)
      return refused(sparse.error());
  }
  return {{"ok", true}, {"by", families}};
}

/// The GPU runs on record of a row.
json seenRuns(const json &seen, const std::string &row) { return seen.value(row, json::array()); }

json attention(const json &seen) {
  json rows = json::array();
  for (const Feature &feature : kFeatures) {
    const auto variant = variantOf(feature);
    json row{{"feature", feature.name}, {"words", feature.words}, {"cpu", cellOf(variant, nullptr)}};
    for (const target::Target &target : target::targets()) {
      json &cell = row["gpus"][std::string(target.arch)] = cellOf(variant, &target);
      cell["seen"] = json::array();
      if (cell["ok"] == true)
        for (const json &run : seenRuns(seen, std::string(feature.name)))
          if (run["arch"] == target.arch)
            cell["seen"].push_back(run);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

json engines(const json &seen) {
  json all = json::parse(kEngines);
  for (const auto &[name, engine] : all.items())
    for (json &row : engine["features"])
      row["seen"] = seenRuns(seen, name + ": " + row["feature"].get<std::string>());
  return all;
}

/// Footnotes of a page: each text once.
class Notes {
public:
  std::string mark(const std::string &text) {
    for (std::size_t i = 0; i < texts_.size(); ++i)
      if (texts_[i] == text)
        return "[" + std::to_string(i + 1) + "]";
    texts_.push_back(text);
    return "[" + std::to_string(texts_.size()) + "]";
  }
  void write(std::ostream &out) const {
    for (std::size_t i = 0; i < texts_.size(); ++i)
      out << i + 1 << ". " << texts_[i] << '\n';
  }

private:
  std::vector<std::string> texts_;
};

/// "H100, H200", or `otherwise` if no run is on record.
std::string cardsText(const json &seen, const std::string &otherwise) {
  std::set<std::string> cards;
  for (const json &run : seen)
    cards.insert(run["card"].get<std::string>());
  std::string text;
  for (const std::string &card : cards)
    text += (text.empty() ? "" : ", ") + card;
  return text.empty() ? otherwise : text;
}

std::string cellText(const json &cell, bool isGpu, Notes &notes) {
  if (cell["ok"] == false)
    return "no " + notes.mark(cell["why"].get<std::string>());
  return isGpu ? cardsText(cell["seen"], "compiled") : "tested";
}

/// The architectures whose cells are alike throughout share a column.
std::vector<std::vector<std::string>> columnsOf(const json &rows) {
  std::vector<std::vector<std::string>> columns;
  const auto areAlike = [&](const std::string &one, const std::string &other) {
    for (const json &row : rows)
      if (row["gpus"][one]["ok"] != row["gpus"][other]["ok"] ||
          row["gpus"][one]["seen"] != row["gpus"][other]["seen"] ||
          row["gpus"][one].value("why", "") != row["gpus"][other].value("why", ""))
        return false;
    return true;
  };
  for (const target::Target &target : target::targets()) {
    const std::string arch(target.arch);
    if (!columns.empty() && areAlike(columns.back().back(), arch))
      columns.back().push_back(arch);
    else
      columns.push_back({arch});
  }
  return columns;
}

void writeAttention(std::ostream &out, const json &rows, Notes &notes) {
  const auto columns = columnsOf(rows);
  out << "| attention | processors |";
  for (const auto &archs : columns) {
    for (std::size_t i = 0; i < archs.size(); ++i)
      out << (i ? ", " : " ") << archs[i];
    out << " |";
  }
  out << "\n|---|---|";
  for (std::size_t i = 0; i < columns.size(); ++i)
    out << "---|";
  out << '\n';
  for (const json &row : rows) {
    out << "| " << row["words"].get<std::string>() << " | " << cellText(row["cpu"], false, notes) << " |";
    for (const auto &archs : columns)
      out << ' ' << cellText(row["gpus"][archs.front()], true, notes) << " |";
    out << '\n';
  }
}

void writeInterfaces(std::ostream &out, const json &rows) {
  const auto code = [](const std::string &name) { return name.empty() ? "no" : "`" + name + "`"; };
  out << "| interface | runs on | C | C++ | Python |\n|---|---|---|---|---|\n";
  for (const json &row : rows) {
    const std::string on = row["on"];
    out << "| " << row["words"].get<std::string>() << " | "
        << (on == "both"  ? "processors, GPUs"
            : on == "gpu" ? "GPUs"
                          : "processors")
        << " | " << code(row["c"]) << " | " << code(row["cpp"]) << " | " << code(row["python"]) << " |\n";
  }
}

void writeEngines(std::ostream &out, const json &engines, Notes &notes) {
  out << "| engine |";
  for (const auto &[name, engine] : engines.items())
    out << ' ' << name << " |";
  out << "\n|---|";
  for (std::size_t i = 0; i < engines.size(); ++i)
    out << "---|";
  out << "\n| releases |";
  for (const auto &[name, engine] : engines.items())
    out << ' ' << engine["first"].get<std::string>() << " to " << engine["last"].get<std::string>() << " |";
  out << "\n| tested on a GPU with |";
  for (const auto &[name, engine] : engines.items())
    out << ' ' << engine["tested_with"].get<std::string>() << " |";
  out << '\n';
  std::vector<std::string> features;
  for (const auto &[name, engine] : engines.items())
    for (const json &row : engine["features"])
      if (const std::string words = row["words"];
          std::find(features.begin(), features.end(), words) == features.end())
        features.push_back(words);
  for (const std::string &words : features) {
    out << "| " << words << " |";
    for (const auto &[name, engine] : engines.items()) {
      std::string text = "does not apply";
      for (const json &row : engine["features"])
        if (row["words"] == words)
          text = row["state"] == "no" ? "no " + notes.mark(row["why"].get<std::string>())
                                      : cardsText(row["seen"], row["state"].get<std::string>());
      out << ' ' << text << " |";
    }
    out << '\n';
  }
}

} // namespace

json supportTable() {
  const json seen = json::parse(kSeen);
  return {
      {"attention", attention(seen)}, {"interfaces", json::parse(kInterfaces)}, {"engines", engines(seen)}};
}

std::string supportPage() {
  const json table = supportTable();
  std::ostringstream out;
  Notes notes;
  out << "# Support\n\n"
         "`deftc doctor --support` prints this page; `--json`, `deft.support()`, `deft_support()` and "
         "`deft::supportTable()` give the same "
         "as JSON. It comes from the kernels' own rules, the plug-ins' declarations and the "
         "[records](../tests/gpu/records/README.md) of "
         "GPU runs.\n\n"
         "*Tested*: the test suite runs it on processors (x86-64 with AVX2 or AVX-512). *H100*, *H200*: a "
         "GPU run on such a card is on "
         "record. *Compiled*: kernels compile for the architecture, and no run on a card is on record. *No*: "
         "the numbered error or reason.\n\n";
  writeAttention(out, table["attention"], notes);
  out << '\n';
  writeInterfaces(out, table["interfaces"]);
  out << '\n';
  writeEngines(out, table["engines"], notes);
  out << "\n## Errors\n\n";
  notes.write(out);
  return out.str();
}

} // namespace deft::doctor
