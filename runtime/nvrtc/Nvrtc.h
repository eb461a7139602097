#pragma once

#include "compiler/support/Result.h"
#include "runtime/nvrtc/ResourceReport.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// CUDA's run-time compiler, found and loaded on first use. Nothing of CUDA is linked, so every tool starts
/// without it, and a machine that only loads cubins does not need it.
namespace deft::nvrtc {

struct Version {
  int major = 0;
  int minor = 0;
  std::string text() const { return std::to_string(major) + "." + std::to_string(minor); }
};

struct SearchOptions {
  std::string path; ///< a libnvrtc file, or a folder with one; if set, the only place to look
};

struct CompileOptions {
  bool lineInfo = false; ///< lets profilers show source lines; triples the size of cubins
  bool ptx = false;      ///< also return PTX
};

struct Compiled {
  std::string cubin;
  std::string ptx;                        ///< if requested
  std::string log;                        ///< of the compiler and of ptxas
  std::vector<KernelResources> resources; ///< for each entry
};

/// The options of a compilation, in their order; part of a cubin's cache key.
std::vector<std::string> compilerOptions(std::string_view arch, const CompileOptions &options);

/// The places of NVRTC, in order: the build's option; if this code is part of a Python package, the NVRTC
/// wheel next to it; the loader's path; CUDA_HOME and CUDA_PATH; /usr/local/cuda.
std::vector<std::string> searchPaths(const SearchOptions &options);

/// A loaded NVRTC. Safe for use by several threads at once.
class Nvrtc {
public:
  /// Loads the first library of searchPaths() that can be loaded and has all required functions.
  static support::Result<std::shared_ptr<const Nvrtc>> load(const SearchOptions &options = {});
  ~Nvrtc();
  Nvrtc(const Nvrtc &) = delete;
  Nvrtc &operator=(const Nvrtc &) = delete;

  Version version() const { return version_; }
  const std::string &path() const { return path_; } ///< of the loaded file
  bool supports(std::string_view arch) const;

  /// Compiles one translation unit for a real architecture such as "sm_90a". Messages contain `fileName`.
  /// Includes find only the embedded templates.
  support::Result<Compiled> compile(const std::string &fileName, const std::string &source,
                                    std::string_view arch, const CompileOptions &options = {}) const;

private:
  struct Functions;
  Nvrtc(std::unique_ptr<Functions> functions, std::string path, Version version);

  std::unique_ptr<Functions> functions_;
  std::string path_;
  Version version_;
};

} // namespace deft::nvrtc
