#pragma once

#include "compiler/support/Result.h"
#include "runtime/nvrtc/Nvrtc.h"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Compiled kernels on disk, shared by all processes of a user. The user may delete them at any time.
namespace deft::module_cache {

struct CachedKernel {
  std::string cubin;
  nvrtc::KernelResources resources;
};

/// The name of a kernel in the cache: SHA-256 over everything that affects the cubin (source, the template
/// headers that it includes, options, architecture, NVRTC's version) and nothing else.
std::string cacheKey(std::string_view source, std::string_view arch, const std::vector<std::string> &options,
                     nvrtc::Version version);

/// DEFT_CACHE_DIR, else XDG_CACHE_HOME/deftc, else HOME/.cache/deftc.
support::Result<std::string> defaultCacheFolder();

/// The folder of kernels in it, in the layout of this build; it may not exist.
std::string kernelsFolder(const std::string &cacheFolder);

/// A folder of entries, each a folder named by its key:
///   kernel.cu     the source, for people
///   kernel.cubin
///   report.json   key and resources
///   sha256sums    of the three, as `sha256sum -c` reads it
/// An entry appears complete, by a rename. It is used only if its files belong to this user and match the
/// checksums; anything else counts as absent, and the next store replaces it. A failure costs time, never a
/// result: the cache then stops writing and keeps one warning with the reason.
class CubinCache {
public:
  static std::unique_ptr<CubinCache> open(const std::string &folder);
  /// Opens the default folder; without a home there is none, and the warning says so.
  static std::unique_ptr<CubinCache> openDefault();

  std::optional<CachedKernel> find(const std::string &key) const;
  void store(const std::string &key, std::string_view source, const CachedKernel &kernel);

  /// The folder of entries; empty if the cache could not be opened.
  const std::string &folder() const { return folder_; }
  bool isWritable() const;
  /// The first failure. Only the first call returns it.
  std::optional<std::string> takeWarning();

private:
  CubinCache() = default;
  void stopWriting(const std::string &why);
  bool writeEntry(const std::string &key, std::string_view source, const CachedKernel &kernel);

  std::string folder_;
  mutable std::mutex mutex_; ///< guards the members below
  bool writable_ = false;
  std::optional<std::string> warning_;
};

} // namespace deft::module_cache
