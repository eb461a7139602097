#pragma once

#include "compiler/package/Package.h"
#include "compiler/spec/CompileSpec.h"

namespace deft::package {

/// The files of a compilation in the form that a package stores: first the spec, then its imports. Their
/// names do not contain the spec's folder, so a package does not reveal where it was built, and equal specs
/// give equal bytes everywhere.
std::vector<SpecFile> specFilesOf(const support::SourceManager &sources, std::uint32_t specFile);

/// Finds imports among a package's files in the way in which the build found them on disk.
spec::ImportResolver packagedResolver(std::vector<SpecFile> files);

} // namespace deft::package
