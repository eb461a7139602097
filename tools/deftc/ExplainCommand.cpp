#include "specs/LanguageRules.h"
#include "tools/deftc/common/Arguments.h"
#include "tools/deftc/common/Commands.h"
#include "tools/deftc/common/ConfigOptions.h"
#include "tools/deftc/common/DeviceInput.h"
#include "tools/deftc/common/ProgramInput.h"
#include "tools/deftc/common/Progress.h"
#include "tools/deftc/common/SelectText.h"
#include "tools/deftc/common/SparseChoice.h"
#include "tools/deftc/common/TreeInput.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <iomanip>
#include <ostream>

namespace deft::cli {

using config_cache::Candidate;
using config_cache::Ruling;

namespace {

constexpr char kExplainFooter[] = R"(Examples:
  deftc explain llama3_8b --workload few_shot
  deftc explain my.deft --tree tree.json --device h200     (as on that device)
  deftc explain V4                                         (a rule of the language)
The rules, in their order: a config that the user gives (override), one tuned for this variant and class on
this device (exact), on another model of the same architecture and size (sibling), for a near class or variant
(nearby), and the analytic choice (heuristic). Exact entries of older kernels rank as nearby ones.)";

struct ExplainOptions {
  std::string input, variant, config;
  TreeOptions tree;
  DeviceOptions device;
  bool asJson = false;
};

void printCandidate(std::ostream &out, const Candidate &candidate) {
  const std::string &path = candidate.path;
  out << "  " << std::left << std::setw(10) << config_cache::ruleName(candidate.rule) << candidate.why()
      << '\n'
      << "            " << configText(candidate.config) << '\n';
  if (!path.empty())
    out << "            " << path << '\n';
}

void print(Context &context, const Ruling &ruling, const ChosenDevice &device, const NamedTree &subject,
           const config_cache::Places &places, const spec::Variant &variant,
           const std::optional<SparseChoice> &sparse) {
  std::ostream &out = context.out;
  out << "variant   " << ruling.signature.text() << '\n'
      << "tree      " << subject.name << ": " << ruling.treeClass.text() << ", "
      << familyName(familyOf(ruling.treeClass)) << " (" << describe(ruling.treeClass) << ")\n"
      << "device    " << device.key.text() << '\n'
      << "config    " << configText(ruling.config()) << '\n'
      << "rule      " << config_cache::ruleName(ruling.rule()) << ": " << ruling.chosen.why() << '\n';
  if (!ruling.chosen.path.empty())
    out << "file      " << ruling.chosen.path << '\n';
  out << "places    " << placesText(places) << '\n';
  if (variant.select) // which has no say in the config: it is that of the full attention
    out << "select    " << selectText(*variant.select) << '\n';
  if (sparse)
    print(*sparse, out);
  if (!ruling.next.empty())
    out << "next\n";
  for (const Candidate &candidate : ruling.next)
    printCandidate(out, candidate);
  for (const config_cache::Rejected &rejected : ruling.rejected)
    out << "not used  " << (rejected.entry ? keyOf(rejected.entry->entry) + ", " : "") << rejected.path
        << ": " << rejected.reason << '\n';
}

bool isRule(const std::string &input) {
  std::error_code none;
  return specs::isRuleName(input) && !std::filesystem::exists(input, none);
}

int explainRule(Context &context, const std::string &name, bool asJson) {
  std::string known;
  for (const specs::LanguageRule &rule : specs::languageRules()) {
    if (rule.name == name && asJson) {
      const nlohmann::json json = {{"rule", rule.name}, {"section", rule.section}, {"text", rule.text}};
      context.out << json.dump(2) << '\n';
      return kExitOk;
    }
    if (rule.name == name) {
      context.out << rule.name << " (" << rule.section << "): " << rule.text << '\n';
      return kExitOk;
    }
    if (rule.name.front() == name.front())
      known = rule.name;
  }
  return reportError(context, {support::ErrorCode::Usage, "the language has no rule " + name,
                               known.empty() ? "" : "the last one of its letter is " + known});
}

int explain(Context &context, const ExplainOptions &options) {
  if (isRule(options.input))
    return explainRule(context, options.input, options.asJson);
  if (const auto read = readsConfigs(context, options.config); !read)
    return reportError(context, read.error());
  const auto program = openProgram(context, options.input, options.variant);
  if (!program)
    return reportError(context, program.error());
  const auto subject = openTree(context, options.tree);
  if (!subject)
    return reportError(context, subject.error());
  const config_cache::Places places = config_cache::defaultPlaces(options.config);
  const auto device = chooseDevice(options.device, places);
  if (!device)
    return reportError(context, device.error());
  auto chooser = chooserFor(context, *program, *device, options.config);
  if (!chooser)
    return reportError(context, chooser.error());
  const Ruling &ruling = [&]() -> const Ruling & {
    const Underway underway(context, "planning");
    return chooser->explain(subject->tree);
  }();
  const auto sparse = sparseChoice(*program, *device, places);
  if (!options.asJson) {
    print(context, ruling, *device, *subject, places, program->variant(), sparse);
    return kExitOk;
  }
  nlohmann::json result = toJson(ruling);
  if (sparse)
    result["sparse"] = toJson(*sparse);
  result["family"] = familyName(familyOf(ruling.treeClass));
  result["device"] = config_cache::toJson(device->key);
  result["tree"] = subject->name;
  result["places"] = {
      {"override", places.overridePath}, {"user", places.userFolder}, {"installed", places.installedFolder}};
  context.out << result.dump(2) << '\n';
  return kExitOk;
}

} // namespace

void addExplainCommand(CLI::App &app, Context &context) {
  CLI::App *command = app.add_subcommand(
      "explain",
      "Show which config a tree gets, by which rule and from which file; or explain a rule of the language");
  auto options = std::make_shared<ExplainOptions>();
  addProgramOptions(*command, options->input, options->variant);
  addTreeOptions(*command, options->tree);
  addDeviceOptions(*command, options->device);
  command->add_option("--threads", options->device.threads, "CPU threads; default: all")->check(threads());
  addConfigOption(*command, options->config);
  command->add_flag("--json", options->asJson, "Print JSON");
  command->footer(kExplainFooter);
  context.onRun(command, [&context, options] { return explain(context, *options); });
}

} // namespace deft::cli
