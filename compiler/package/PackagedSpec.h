#pragma once

#include "compiler/package/Package.h"
#include "compiler/spec/CompileSpec.h"

namespace deft::package {

/// The files of a compilation as a package keeps them: the spec first, its imports after it. Names lose
/// the folder of the spec, so that a package does not tell where it was built and the same spec gives
/// the same bytes everywhere.
std::vector<SpecFile> specFilesOf(const support::SourceManager &sources, std::uint32_t specFile);

/// Finds imports among a package's files, as the build found them on disk.
spec::ImportResolver packagedResolver(std::vector<SpecFile> files);

} // namespace deft::package
