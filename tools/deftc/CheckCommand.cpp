#include "compiler/spec/Names.h"
#include "tools/deftc/Commands.h"
#include "tools/deftc/common/SpecInput.h"

#include <ostream>

namespace deft::cli {
namespace {

std::string summary(const spec::Variant &v) {
  std::string text = v.name + ": " + std::to_string(v.queryHeads) + " query heads, " +
                     std::to_string(v.kvHeads) + " kv heads, head dim " + dimText(v.tensors) + ", " +
                     dtypeText(v.tensors) + ", ";
  text += v.cache.paged ? "pages of " + std::to_string(v.cache.pageSize) + " " + toString(v.cache.order)
                        : std::string("contiguous");
  if (v.mask)
    text += ", mask";
  if (v.score)
    text += ", score";
  if (v.normalize == spec::Normalize::Sigmoid)
    text += ", sigmoid";
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

} // namespace

void addCheckCommand(CLI::App &app, Context &context) {
  CLI::App *command = app.add_subcommand("check", "Check specs and report what is wrong with them");
  auto paths = std::make_shared<std::vector<std::string>>();
  command->add_option("SPEC", *paths, "Files, or names of shipped specs")->required();
  command->footer(
      "Example:\n  deftc check my.deft llama3_8b\n"
      "Prints a line for each attention; errors go to the error stream, and the exit code is then 1.");
  context.onRun(command, [&context, paths] { return check(context, *paths); });
}

} // namespace deft::cli
