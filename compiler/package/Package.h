#pragma once

#include "compiler/codegen/cuda/VariantSource.h"
#include "compiler/package/KernelSet.h"
#include "compiler/support/Result.h"

#include <string>
#include <string_view>
#include <vector>

/// A compiled spec. It holds native code, so it is to be trusted like a program: the checksums guard
/// against accidents, not against an author of ill will.
namespace deft::package {

/// A spec's text, or that of a file it imports.
struct SpecFile {
  std::string name; ///< as diagnostics and imports call it
  std::string text;
};

struct PackagedVariant {
  codegen::cuda::VariantSource source;
  std::vector<KernelSet> kernels; ///< of an architecture, those of all its default configs
};

/// Native code for the host's processor: a shared object that depends on nothing, with one table of
/// functions for each variant (templates/deft/cpu_abi.h).
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

/// That the package at `path` is whole, but is not what `deftc build` writes.
support::Error malformed(const std::string &path, const std::string &what);

/// `path` is for messages.
support::Result<Package> readPackage(std::string_view bytes, const std::string &path);
support::Result<Package> openPackage(const std::string &path);

} // namespace deft::package
