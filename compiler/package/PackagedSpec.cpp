#include "compiler/package/PackagedSpec.h"

#include <filesystem>

namespace deft::package {

namespace fs = std::filesystem;

std::vector<SpecFile> specFilesOf(const support::SourceManager &sources, std::uint32_t specFile) {
  const fs::path folder = fs::path(sources.name(specFile)).parent_path();
  const auto keptName = [&](const std::string &name) {
    // Files in the binary are called "<deftc>/x.deft"; only those beside or below the spec lie in a folder.
    if (name.starts_with('<'))
      return name;
    return fs::path(name).lexically_relative(folder.empty() ? "." : folder).generic_string();
  };
  std::vector<SpecFile> files;
  const auto keep = [&](std::uint32_t file) {
    files.push_back({keptName(sources.name(file)), std::string(sources.text(file))});
  };
  keep(specFile);
  for (std::uint32_t file = 0; file < sources.fileCount(); ++file)
    if (file != specFile)
      keep(file);
  return files;
}

spec::ImportResolver packagedResolver(std::vector<SpecFile> files) {
  return [files = std::move(files)](const std::string &importer,
                                    const std::string &path) -> support::Result<spec::ImportedFile> {
    const std::string beside = (fs::path(importer).parent_path() / path).lexically_normal().generic_string();
    for (const std::string &name : {beside, "<deftc>/" + path})
      for (const SpecFile &file : files)
        if (file.name == name)
          return spec::ImportedFile{file.name, file.text};
    return support::Error{support::ErrorCode::Diagnostics, "the package does not hold `" + path + "`", {}};
  };
}

} // namespace deft::package
