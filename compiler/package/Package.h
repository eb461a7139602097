#pragma once

#include "compiler/codegen/cuda/VariantSource.h"
#include "compiler/package/KernelSet.h"
#include "compiler/support/Result.h"

#include <string>
#include <string_view>
#include <vector>

/// A compiled spec. It contains native code, so trust it like a program: checksums protect against accidents,
/// not against malicious authors.
namespace deft::package {

/// The text of a spec or of a file that it imports.
struct SpecFile {
  std::string name; ///< its name in diagnostics and imports
  std::string text;
};

struct PackagedVariant {
  codegen::cuda::VariantSource source;
  std::vector<KernelSet> kernels; ///< for each architecture, those of all its default configs
};

/// Native code for the host's processor: a shared object without dependencies, with one table of functions
/// for each variant (templates/deft/cpu_abi.h).
struct CpuObject {
  int isaLevel = 3; ///< x86-64-v3 or x86-64-v4
  std::string sharedObject;
};

struct Package {
  std::string deftcVersion;        ///< of the deftc that built it
  std::string nvrtcVersion;        ///< empty without cubins
  std::vector<SpecFile> specFiles; ///< the first is the spec, the others are its imports
  std::vector<PackagedVariant> variants;
  std::vector<CpuObject> cpu; ///< by rising level

  const PackagedVariant *find(std::string_view name) const;
};

/// Deterministic: the same package gives the same bytes.
std::string writePackage(const Package &package);

/// The error for a package at `path` that is complete but that `deftc build` cannot have written.
support::Error malformed(const std::string &path, const std::string &what);

/// `path` is for messages.
support::Result<Package> readPackage(std::string_view bytes, const std::string &path);
support::Result<Package> openPackage(const std::string &path);

} // namespace deft::package
