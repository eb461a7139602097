#include "compiler/spec/Names.h"
#include "compiler/spec/VariantJson.h"
#include "tools/deftc/common/CommandWalk.h"
#include "tools/deftc/common/Commands.h"
#include "tools/deftc/common/SpecInput.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <ostream>
#include <string>
#include <utility>

namespace deft::cli {
namespace {

std::string summary(const spec::Variant &v) {
  std::string text = v.name + ": " + std::to_string(v.queryHeads) + " query heads, " +
                     std::to_string(v.kvHeads) + " kv heads, head dim " + dimText(v.tensors) + ", " +
                     dtypeText(v.tensors) + ", ";
  text += v.cache.isPaged() ? "pages of " + std::to_string(v.cache.pageSize) + " " + toString(v.cache.order)
                            : std::string("contiguous");
  const std::pair<bool, const char *> parts[] = {
      {v.bound == spec::MaskBound::Path, "path"},
      {v.mask.has_value(), "mask"},
      {v.score.has_value(), "score"},
      {v.query.has_value(), "query hook"},
      {v.key.has_value(), "key hook"},
      {v.valueFactor.has_value(), "value hook"},
      {v.output.has_value(), "output hook"},
      {v.sink.has_value(), "sink"},
      {v.normalize == spec::Normalize::Sigmoid, "sigmoid"},
      {v.select.has_value(), "select"},
  };
  for (const auto &[isThere, name] : parts)
    if (isThere)
      text += std::string(", ") + name;
  for (const spec::Param &param : v.params)
    text += ", param " + param.name;
  if (v.tensors.out.dtype != v.tensors.k.dtype)
    text += std::string(", output ") + toString(v.tensors.out.dtype);
  return text + (v.withLse ? ", lse" : "");
}

int check(Context &context, const std::vector<std::string> &paths) {
  int code = kExitOk;
  for (const std::string &path : paths) {
    auto spec = loadSpecFile(context, path);
    if (!spec.ok()) {
      code = std::max(code, reportError(context, spec.error()));
      continue;
    }
    if ((*spec)->variants.empty())
      context.out << (*spec)->path << ": ok, no attention\n";
    for (const spec::Variant &variant : (*spec)->variants)
      context.out << (*spec)->path << ": ok, " << summary(variant) << '\n';
  }
  return code;
}

nlohmann::ordered_json toJson(const support::SourceManager &sources, const support::Diagnostic &finding) {
  const auto place = [&](const support::SourceRange &range) {
    const support::LineColumn begin = sources.lineColumn(range.file, range.begin),
                              end = sources.lineColumn(range.file, range.end);
    return nlohmann::ordered_json{{"file", sources.name(range.file)},
                                  {"line", begin.line},
                                  {"column", begin.column},
                                  {"end_line", end.line},
                                  {"end_column", end.column}};
  };
  nlohmann::ordered_json json = place(finding.range);
  json["severity"] = finding.severity == support::Severity::Error ? "error" : "warning";
  json["message"] = finding.message;
  if (!finding.hint.empty())
    json["hint"] = finding.hint;
  for (const support::DiagnosticNote &note : finding.notes) {
    json["notes"].push_back(place(note.range));
    json["notes"].back()["message"] = note.message;
  }
  return json;
}

/// For editors and scripts: of each spec, what was found and the attentions of one that is right.
int checkAsJson(Context &context, const std::vector<std::string> &paths) {
  int code = kExitOk;
  nlohmann::ordered_json specs = nlohmann::ordered_json::array();
  for (const std::string &path : paths) {
    support::DiagnosticSink sink;
    const auto spec = checkSpecFile(context, path, sink);
    if (!spec.ok()) {
      code = std::max(code, static_cast<int>(exitCodeFor(spec.error().code)));
      nlohmann::ordered_json error{{"severity", "error"}, {"message", spec.error().message}};
      if (!spec.error().hint.empty())
        error["hint"] = spec.error().hint;
      specs.push_back({{"spec", path}, {"ok", false}, {"findings", {std::move(error)}}});
      continue;
    }
    nlohmann::ordered_json one{{"spec", (*spec)->path}, {"ok", !sink.hasErrors()}};
    one["findings"] = nlohmann::ordered_json::array();
    for (const support::Diagnostic &finding : sink.diagnostics())
      one["findings"].push_back(toJson((*spec)->sources, finding));
    one["attentions"] = nlohmann::ordered_json::array();
    if (sink.hasErrors())
      code = std::max<int>(code, kExitDiagnostics);
    else
      for (const spec::Variant &variant : (*spec)->variants)
        one["attentions"].push_back(spec::toJson(variant));
    specs.push_back(std::move(one));
  }
  context.out << specs.dump(2) << '\n';
  return code;
}

} // namespace

void addCheckCommand(CLI::App &app, Context &context) {
  CLI::App *command = app.add_subcommand("check", "Check specs and report their errors");
  auto paths = std::make_shared<std::vector<std::string>>();
  command->add_option("SPEC", *paths, "Files, names of shipped specs, or - for standard input")
      ->type_name(kSpecOrFile)
      ->required();
  auto asJson = std::make_shared<bool>(false);
  command->add_flag("--json", *asJson, "Print findings and attentions as JSON");
  command->footer("Example:\n  deftc check my.deft llama3_8b\n"
                  "Prints a line for each attention; errors go to the error stream, and the exit code is "
                  "then 1, or 3\nif a file cannot be read.");
  context.onRun(command, [&context, paths, asJson] {
    return *asJson ? checkAsJson(context, *paths) : check(context, *paths);
  });
}

} // namespace deft::cli
