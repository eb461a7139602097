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

/// Whether `path`, its links resolved, lies in `folder` or below.
bool isWithin(const fs::path &folder, const fs::path &path) {
  std::error_code none;
  const fs::path root = fs::canonical(folder, none);
  const fs::path own =
      none ? fs::path() : fs::weakly_canonical(fs::absolute(path), none); // of a file that is not there, too
  if (none)
    return false;
  const fs::path way = own.lexically_relative(root);
  return !way.empty() && *way.begin() != "..";
}

support::Result<spec::ImportedFile> resolve(const std::string &folder, const std::string &importer,
                                            const std::string &path) {
  // Nothing but specs can be named, and only in the place of the spec: a stranger's is safe to compile. A
  // link that leads elsewhere would put that file's lines into diagnostics.
  if (fs::path(path).is_absolute())
    return wrong("`" + path + "` is an absolute path", "the path is relative to the importing file");
  if (!std::string_view(path).ends_with(kExtension))
    return wrong("`" + path + "` does not name a `.deft` file");
  std::error_code ignored;
  if (fs::is_directory(folder, ignored) && !importer.starts_with(kEmbeddedFolder)) {
    const std::string beside = (fs::path(importer).parent_path() / path).lexically_normal().string();
    if (!isWithin(folder, beside))
      return wrong("`" + path + "` lies outside of the folder of the spec",
                   "imports are files of that folder and below, also behind links, or of the library");
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

spec::ImportResolver importResolver(std::string folder) {
  return [folder = std::move(folder)](const std::string &importer, const std::string &path) {
    return resolve(folder, importer, path);
  };
}

spec::ImportResolver importResolverOf(const std::string &specFile) {
  const std::string folder = fs::path(specFile).parent_path().string();
  return importResolver(folder.empty() ? "." : folder);
}

} // namespace deft::specs
