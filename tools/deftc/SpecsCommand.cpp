#include "compiler/support/NearestName.h"
#include "specs/Embedded.h"
#include "tools/deftc/common/CommandWalk.h"
#include "tools/deftc/common/Commands.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <ostream>

namespace deft::cli {
namespace {

/// The comment that opens a spec, as one line up to its first full stop that ends a sentence.
std::string description(std::string_view text) {
  std::string words;
  while (text.starts_with("//")) {
    std::size_t end = std::min(text.find('\n'), text.size());
    words += (words.empty() ? "" : " ") + std::string(text.substr(3, end - 3));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::size_t stop = words.find(". ");
  return stop == std::string::npos ? words : words.substr(0, stop + 1);
}

int list(Context &context) {
  std::size_t width = 0;
  for (const specs::EmbeddedSpec &spec : specs::embeddedSpecs())
    width = std::max(width, spec.name.size());
  for (const specs::EmbeddedSpec &spec : specs::embeddedSpecs())
    context.out << spec.name << std::string(width + 2 - spec.name.size(), ' ') << description(spec.text)
                << '\n';
  return kExitOk;
}

int print(Context &context, const std::string &name, const std::string &output) {
  if (const specs::EmbeddedSpec *spec = specs::findEmbeddedSpec(name))
    return writeOutput(context, output, spec->text);
  std::vector<std::string> names;
  for (const specs::EmbeddedSpec &spec : specs::embeddedSpecs())
    names.emplace_back(spec.name);
  const std::string nearest = support::didYouMean(name, names);
  return reportError(context, {support::ErrorCode::Usage, "no shipped spec is called `" + name + "`",
                               nearest.empty() ? "`deftc specs` lists them" : nearest});
}

} // namespace

void addSpecsCommand(CLI::App &app, Context &context) {
  CLI::App *command = app.add_subcommand("specs", "List the shipped specs, or print one to start from");
  auto name = std::make_shared<std::string>();
  auto output = std::make_shared<std::string>();
  command->add_option("NAME", *name, "The spec to print")->type_name(kSpecName);
  command->add_option("-o,--output", *output, "Write it to this file");
  command->footer("Example:\n  deftc specs\n  deftc specs llama3_8b -o my.deft");
  context.onRun(command, [&context, name, output] {
    return name->empty() ? list(context) : print(context, *name, *output);
  });
}

} // namespace deft::cli
