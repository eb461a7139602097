#include "tools/deftc/SpecInput.h"

#include "compiler/spec/CompileSpec.h"
#include "compiler/spec/Limits.h"
#include "compiler/support/AtomicFile.h"
#include "compiler/support/NearestName.h"
#include "compiler/support/Render.h"
#include "specs/Embedded.h"

#include <filesystem>
#include <ostream>

namespace deft::cli {
namespace {

using support::Error;
using support::ErrorCode;

/// The file as named, else a shipped spec.
support::Result<spec::ImportedFile> readSpec(const std::string &path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    if (const specs::EmbeddedSpec *shipped = specs::findEmbeddedSpec(path))
      return spec::ImportedFile{specs::embeddedFileName(*shipped), std::string(shipped->text)};
  auto text = support::readFile(path, spec::kMaxFileBytes);
  if (text.ok())
    return spec::ImportedFile{path, std::move(*text)};
  std::vector<std::string> names;
  for (const specs::EmbeddedSpec &shipped : specs::embeddedSpecs())
    names.emplace_back(shipped.name);
  return Error{ErrorCode::Diagnostics, text.error().message, support::didYouMean(path, names)};
}

} // namespace

support::Result<std::shared_ptr<LoadedSpec>> loadSpecFile(Context &context, const std::string &path) {
  auto text = readSpec(path);
  if (!text.ok())
    return std::move(text).error();
  auto loaded = std::make_shared<LoadedSpec>();
  loaded->path = text->name;
  loaded->file = loaded->sources.add(text->name, std::move(text->text));
  support::DiagnosticSink sink;
  loaded->variants = spec::compileSpec(loaded->sources, loaded->file, specs::importResolver(), sink);
  context.err << support::renderDiagnostics(loaded->sources, sink, {context.errColour});
  if (sink.hasErrors())
    return Error{ErrorCode::Diagnostics, {}, {}};
  return loaded;
}

support::Result<std::shared_ptr<LoadedSpec>> loadSpec(Context &context, const std::string &path) {
  auto loaded = loadSpecFile(context, path);
  if (loaded.ok() && (*loaded)->variants.empty())
    return Error{ErrorCode::Diagnostics, "`" + (*loaded)->path + "` defines no attention", {}};
  return loaded;
}

support::Result<const spec::Variant *> chooseVariant(const LoadedSpec &spec, const std::string &name) {
  if (name.empty() && spec.variants.size() == 1)
    return &spec.variants.front();
  std::vector<std::string> names;
  std::string list;
  for (const spec::Variant &variant : spec.variants) {
    if (variant.name == name)
      return &variant;
    names.push_back(variant.name);
    list += (list.empty() ? "" : ", ") + variant.name;
  }
  if (name.empty())
    return Error{ErrorCode::Usage,
                 "`" + spec.path + "` defines " + std::to_string(names.size()) + " attentions",
                 "choose one with --variant: " + list};
  std::string nearest = support::didYouMean(name, names);
  return Error{ErrorCode::Usage, "`" + spec.path + "` defines no attention `" + name + "`",
               nearest.empty() ? "it defines " + list : nearest};
}

} // namespace deft::cli
