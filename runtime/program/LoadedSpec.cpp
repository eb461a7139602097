#include "runtime/program/LoadedSpec.h"

#include "compiler/package/Container.h"
#include "compiler/package/PackagedSpec.h"
#include "compiler/spec/Limits.h"
#include "compiler/support/AtomicFile.h"
#include "compiler/support/NearestName.h"
#include "compiler/support/Render.h"
#include "specs/Embedded.h"

#include <filesystem>
#include <utility>

namespace deft::program {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

/// What the kernels of one are not made for where they are to run the other; null: nothing.
const char *differenceOf(const codegen::cuda::VariantSource &source, const spec::Variant &variant) {
  const std::pair<const char *, bool> facts[] = {
      {"query_heads", source.queryHeads == variant.queryHeads},
      {"kv_heads", source.kvHeads == variant.kvHeads},
      {"tensors", source.tensors == variant.tensors},
      {"lse", source.withLse == variant.withLse},
      {"page_size", source.pageSize == variant.cache.pageSize},
      {"normalize", source.normalize == variant.normalize},
      {"parameters", source.params.size() == variant.params.size()},
      {"arrays over tokens", source.tokenParams == variant.tokenParams()},
      {"hooks", source.has == spec::HookSet::of(variant)},
  };
  for (const auto &[what, isSame] : facts)
    if (!isSame)
      return what;
  return nullptr;
}

/// No spec begins so.
bool isJson(const std::string &text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && (text[first] == '{' || text[first] == '[');
}

} // namespace

Result<spec::ImportedFile> readSpec(const std::string &path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    if (const specs::EmbeddedSpec *shipped = specs::findEmbeddedSpec(path))
      return spec::ImportedFile{specs::embeddedFileName(*shipped), std::string(shipped->text)};
  auto text = support::readFile(path, spec::kMaxFileBytes);
  if (text.ok() && package::looksLikePackage(*text))
    return Error{ErrorCode::Usage, "`" + path + "` is a package, not the text of a spec",
                 "run it, or pass the spec that it was built from"};
  if (text.ok() && isJson(*text))
    return Error{ErrorCode::Usage, "`" + path + "` is JSON, not the text of a spec",
                 text->find("deftc-tree") != std::string::npos ? "a tree is given with --tree" : ""};
  if (text.ok())
    return spec::ImportedFile{path, std::move(*text)};
  std::vector<std::string> names;
  for (const specs::EmbeddedSpec &shipped : specs::embeddedSpecs())
    names.emplace_back(shipped.name);
  const std::string meant = support::didYouMean(path, names);
  return Error{text.error().code, text.error().message, meant.empty() ? text.error().hint : meant};
}

std::shared_ptr<LoadedSpec> checkSpec(spec::ImportedFile file, const spec::ImportResolver &resolver,
                                      support::DiagnosticSink &sink) {
  auto loaded = std::make_shared<LoadedSpec>();
  loaded->path = file.name;
  loaded->file = loaded->sources.add(std::move(file.name), std::move(file.text));
  loaded->variants = spec::compileSpec(loaded->sources, loaded->file, resolver, sink);
  return loaded;
}

Result<std::shared_ptr<LoadedSpec>> loadPackagedSpec(const package::Package &package,
                                                     const std::string &path) {
  if (package.specFiles.empty())
    return package::malformed(path, "it holds no spec");
  support::DiagnosticSink sink;
  auto loaded = checkSpec({package.specFiles[0].name, package.specFiles[0].text},
                          package::packagedResolver(package.specFiles), sink);
  if (sink.hasErrors())
    return Error{ErrorCode::Diagnostics,
                 path + ": this deftc does not accept the package's spec\n" +
                     support::renderDiagnostics(loaded->sources, sink),
                 "it was built by deftc " + package.deftcVersion};
  loaded->path = path;
  // A package may have been built of some of the spec's attentions only.
  std::erase_if(loaded->variants, [&](const spec::Variant &variant) { return !package.find(variant.name); });
  for (const spec::Variant &variant : loaded->variants)
    if (const char *differing = differenceOf(package.find(variant.name)->source, variant))
      return package::malformed(path, "its kernels' source and its spec differ in " + std::string(differing) +
                                          " of " + variant.called());
  return loaded;
}

Result<const spec::Variant *> chooseVariant(const LoadedSpec &spec, const std::string &name,
                                            const std::string &howToChoose) {
  if (spec.variants.empty())
    return Error{ErrorCode::Diagnostics, "`" + spec.path + "` defines no attention", ""};
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
                 howToChoose + ": " + list};
  std::string nearest = support::didYouMean(name, names);
  return Error{ErrorCode::Usage, "`" + spec.path + "` defines no attention `" + name + "`",
               nearest.empty() ? "it defines " + list : nearest};
}

} // namespace deft::program
