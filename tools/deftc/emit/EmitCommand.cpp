#include "tools/deftc/common/Commands.h"
#include "tools/deftc/common/Progress.h"
#include "tools/deftc/common/Words.h"
#include "tools/deftc/emit/Emitters.h"

#include "compiler/support/NearestName.h"
#include "tools/deftc/common/CommandWalk.h"

#include <CLI/CLI.hpp>

#include <algorithm>

namespace deft::cli {
namespace {

struct EmitOptions {
  std::string spec;
  std::string kind;
  std::string variant;
  std::string output;
};

support::Error unknownKind(const EmitterTable &table, const std::string &kind) {
  static const std::vector<std::string> all = {"ast",   "json", "ir",   "cuda", "ptx",
                                               "cubin", "sass", "llvm", "asm"};
  std::vector<std::string> names;
  std::string list;
  for (const EmitKind &known : table.kinds) {
    names.push_back(known.name);
    list += (list.empty() ? "" : ", ") + known.name;
  }
  if (std::find(all.begin(), all.end(), kind) != all.end())
    return {support::ErrorCode::Environment, "this build of deftc cannot emit `" + kind + "`",
            "it was built without the compiler (DEFT_ENABLE_COMPILER=OFF); it emits " + list};
  std::string nearest = support::didYouMean(kind, names);
  return {support::ErrorCode::Usage, "unknown kind `" + kind + "`",
          nearest.empty() ? "it is one of " + list : nearest};
}

/// An option that the kind does not know would do nothing.
support::Result<void> checkOptions(const EmitterTable &table, const EmitKind &kind) {
  for (const auto &[option, kinds] : table.options)
    if (option->count() > 0 && std::find(kinds.begin(), kinds.end(), kind.name) == kinds.end())
      return support::Error{support::ErrorCode::Usage,
                            "`" + option->get_name() + "` is for " + joined(kinds) + ", not for " + kind.name,
                            ""};
  return {};
}

int emit(Context &context, const EmitterTable &table, const EmitOptions &options) {
  auto kind = std::find_if(table.kinds.begin(), table.kinds.end(),
                           [&](const EmitKind &known) { return known.name == options.kind; });
  if (kind == table.kinds.end())
    return reportError(context, unknownKind(table, options.kind));
  if (auto known = checkOptions(table, *kind); !known)
    return reportError(context, known.error());
  if (kind->binary && context.outIsTerminal && (options.output.empty() || options.output == "-"))
    return reportError(context,
                       {support::ErrorCode::Usage, "`" + kind->name + "` is binary and not for a terminal",
                        "write it to a file with -o FILE"});
  if (auto read = context.files.reads(table.configFile()); !read)
    return reportError(context, read.error());
  if (auto writable = checkOutput(context, options.output); !writable)
    return reportError(context, writable.error());
  std::string path = options.spec, name = options.variant;
  if (auto split = splitName(path, name); !split)
    return reportError(context, split.error());
  auto spec = loadSpec(context, path);
  if (!spec.ok())
    return reportError(context, spec.error());
  const spec::Variant *variant = &(*spec)->variants.front();
  if (!kind->wholeFile || !name.empty()) {
    auto chosen = chooseVariant(**spec, name);
    if (!chosen.ok())
      return reportError(context, chosen.error());
    variant = *chosen;
  }
  const auto make = [&] {
    const Underway underway(context, "compiling " + variant->name);
    return kind->emit(**spec, *variant);
  };
  auto text = make();
  if (!text.ok())
    return reportError(context, text.error());
  return writeOutput(context, options.output, *text);
}

} // namespace

void addEmitCommand(CLI::App &app, Context &context) {
  CLI::App *command = app.add_subcommand("emit", "Show the compiler's output for a spec, at any stage");
  auto options = std::make_shared<EmitOptions>();
  auto table = std::make_shared<EmitterTable>();
  command->add_option("SPEC", options->spec, "A file, or the name of a shipped spec; SPEC#NAME chooses")
      ->type_name(kSpecOrFile)
      ->required();
  CLI::Option *as = command->add_option("--as", options->kind)->required();
  command->add_option("--variant", options->variant, "The attention to use if the file defines several");
  command->add_option("-o,--output", options->output, "Write to this file");
  addFrontEndEmitters(*command, *table);
#ifdef DEFT_HAS_COMPILER
  addCompilerEmitters(*command, *table);
  addCudaEmitters(*command, *table);
#endif
  std::string kinds;
  std::vector<std::string> names;
  for (const EmitKind &kind : table->kinds) {
    kinds += "\n" + kind.name + ": " + kind.what;
    names.push_back(kind.name);
  }
  as->description("What to show:" + kinds)->type_name("TEXT:{" + joined(names, ",") + "}");
  command->footer("Example:\n  deftc emit llama3_8b --as json");
  context.onRun(command, [&context, table, options] { return emit(context, *table, *options); });
}

} // namespace deft::cli
