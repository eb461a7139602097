#include "compiler/spec/Limits.h"
#include "compiler/support/AtomicFile.h"
#include "specs/Embedded.h"

#include <filesystem>

namespace deft::specs {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".deft";
constexpr std::string_view kEmbeddedFolder = "<deftc>/";

support::Error wrong(std::string message, std::string hint = {}) {
  return {support::ErrorCode::Diagnostics, std::move(message), std::move(hint)};
}

support::Result<spec::ImportedFile> resolve(const std::string &importer, const std::string &path) {
  // Nothing but specs can be named, and only from the importer's place: a stranger's spec is safe to compile.
  if (fs::path(path).is_absolute())
    return wrong("`" + path + "` is an absolute path", "the path is relative to the importing file");
  if (!std::string_view(path).ends_with(kExtension))
    return wrong("`" + path + "` does not name a `.deft` file");
  bool fromEmbedded = importer.starts_with(kEmbeddedFolder);
  if (!fromEmbedded) {
    std::string beside = (fs::path(importer).parent_path() / path).lexically_normal().string();
    std::error_code ignored;
    if (fs::is_regular_file(beside, ignored)) {
      auto text = support::readFile(beside, spec::kMaxFileBytes);
      if (!text.ok())
        return wrong(text.error().message);
      return spec::ImportedFile{beside, std::move(*text)};
    }
  }
  if (const EmbeddedSpec *spec = findEmbeddedSpec(fs::path(path).lexically_normal().string()))
    return spec::ImportedFile{embeddedFileName(*spec), std::string(spec->text)};
  return wrong("cannot find `" + path + "`",
               "it is looked for beside the importing file, then in the library");
}

} // namespace

std::string embeddedFileName(const EmbeddedSpec &spec) {
  return std::string(kEmbeddedFolder) + std::string(spec.name) + std::string(kExtension);
}

const EmbeddedSpec *findEmbeddedSpec(std::string_view name) {
  if (name.ends_with(kExtension))
    name.remove_suffix(kExtension.size());
  for (const EmbeddedSpec &spec : embeddedSpecs())
    if (spec.name == name)
      return &spec;
  return nullptr;
}

spec::ImportResolver importResolver() { return resolve; }

} // namespace deft::specs
