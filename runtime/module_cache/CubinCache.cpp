#include "runtime/module_cache/CubinCache.h"

#include "compiler/support/GuardedFile.h"
#include "compiler/support/Hash.h"
#include "runtime/module_cache/EntryFiles.h"
#include "runtime/nvrtc/Templates.h"

#include <nlohmann/json.hpp>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace deft::module_cache {
namespace {

using nlohmann::json;

/// In the path, so that a change of the layout starts afresh beside the old entries.
constexpr const char *kLayoutVersion = "cubin-v1";

constexpr const char *kSource = "kernel.cu";
constexpr const char *kCubin = "kernel.cubin";
constexpr const char *kReport = "report.json";
constexpr const char *kSums = "sha256sums";

std::string sumsOf(const std::string &source, const std::string &cubin, const std::string &report) {
  return support::sha256Hex(source) + "  " + kSource + "\n" + support::sha256Hex(cubin) + "  " + kCubin +
         "\n" + support::sha256Hex(report) + "  " + kReport + "\n";
}

std::string reportText(const std::string &key, const nvrtc::KernelResources &resources) {
  return json{{"key", key},
              {"entry", resources.entry},
              {"registers", resources.registers},
              {"stack_bytes", resources.stackBytes},
              {"spill_store_bytes", resources.spillStoreBytes},
              {"spill_load_bytes", resources.spillLoadBytes},
              {"static_shared_bytes", resources.staticSharedBytes}}
             .dump(2) +
         "\n";
}

std::optional<nvrtc::KernelResources> readReport(const std::string &text, const std::string &key) {
  try {
    const json report = json::parse(text);
    if (report.at("key").get<std::string>() != key)
      return std::nullopt;
    return nvrtc::KernelResources{
        .entry = report.at("entry").get<std::string>(),
        .registers = report.at("registers").get<int>(),
        .stackBytes = report.at("stack_bytes").get<int>(),
        .spillStoreBytes = report.at("spill_store_bytes").get<int>(),
        .spillLoadBytes = report.at("spill_load_bytes").get<int>(),
        .staticSharedBytes = report.at("static_shared_bytes").get<int>(),
    };
  } catch (const json::exception &) {
    return std::nullopt;
  }
}

} // namespace

std::string cacheKey(std::string_view source, std::string_view arch, const std::vector<std::string> &options,
                     nvrtc::Version version) {
  support::Sha256 hash;
  // Each part goes in with its length, so that no two lists of parts give the same bytes.
  const auto add = [&](std::string_view part) {
    hash.update(std::to_string(part.size()) + ":");
    hash.update(part);
  };
  add(kLayoutVersion);
  add(source);
  for (const nvrtc::TemplateHeader &header : nvrtc::reachedHeaders(source)) {
    add(header.name);
    add(header.text);
  }
  add("options");
  for (const std::string &option : options)
    add(option);
  add(arch);
  add(version.text());
  return hash.finishHex();
}

std::string kernelsFolder(const std::string &cacheFolder) { return cacheFolder + "/" + kLayoutVersion; }

support::Result<std::string> defaultCacheFolder() {
  const auto variable = [](const char *name) {
    const char *value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (std::string folder = variable("DEFT_CACHE_DIR"); !folder.empty())
    return folder;
  // The XDG rules say to ignore a relative path.
  if (std::string folder = variable("XDG_CACHE_HOME"); !folder.empty() && folder.front() == '/')
    return folder + "/deftc";
  if (std::string folder = variable("HOME"); !folder.empty())
    return folder + "/.cache/deftc";
  return support::Error{support::ErrorCode::Environment, "no place for the kernel cache: HOME is not set",
                        "set DEFT_CACHE_DIR to a folder of your own"};
}

std::unique_ptr<CubinCache> CubinCache::openDefault() {
  const auto folder = defaultCacheFolder();
  if (folder)
    return open(*folder);
  std::unique_ptr<CubinCache> cache(new CubinCache());
  cache->stopWriting(folder.error().message);
  return cache;
}

std::unique_ptr<CubinCache> CubinCache::open(const std::string &folder) {
  std::unique_ptr<CubinCache> cache(new CubinCache());
  const std::string place = kernelsFolder(folder);
  if (const std::string why = support::makePrivateFolder(place); !why.empty()) {
    cache->stopWriting("no kernel cache in `" + place + "`: " + why);
    return cache;
  }
  cache->folder_ = place;
  cache->writable_ = true;
  if (::access(place.c_str(), W_OK) != 0)
    cache->stopWriting("cannot write the kernel cache `" + place + "`: " + std::strerror(errno));
  return cache;
}

std::optional<CachedKernel> CubinCache::find(const std::string &key) const {
  if (folder_.empty())
    return std::nullopt;
  const std::array names{kSource, kCubin, kReport, kSums};
  const auto files = readPrivateFiles(folder_ + "/" + key, names);
  if (!files)
    return std::nullopt;
  const auto &[source, cubin, report, sums] = *files;
  if (sums != sumsOf(source, cubin, report))
    return std::nullopt;
  const auto resources = readReport(report, key);
  if (!resources)
    return std::nullopt;
  return CachedKernel{cubin, *resources};
}

void CubinCache::store(const std::string &key, std::string_view source, const CachedKernel &kernel) {
  if (isWritable() && !writeEntry(key, source, kernel))
    stopWriting("cannot write the kernel cache `" + folder_ + "`: " + std::strerror(errno));
}

bool CubinCache::writeEntry(const std::string &key, std::string_view source, const CachedKernel &kernel) {
  sweepTemporaries(folder_);
  const std::string text(source), report = reportText(key, kernel.resources);
  // No fsync: a torn entry after a crash fails its checksums and is made anew, which is cheaper than
  // four waits for the disk in every cold start.
  TemporaryFolder temporary(folder_);
  if (!temporary.ok() || !temporary.write(kSource, text) || !temporary.write(kCubin, kernel.cubin) ||
      !temporary.write(kReport, report) || !temporary.write(kSums, sumsOf(text, kernel.cubin, report)))
    return false;
  const std::string entry = folder_ + "/" + key;
  for (int attempt = 0; attempt < 8; ++attempt) {
    if (temporary.renameTo(entry))
      return true;
    if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR)
      return false;
    // Another process was first: its entry is as good as ours. A bad one is moved away, then removed.
    if (find(key))
      return true;
    TemporaryFolder bad(folder_);
    if (!bad.ok() || (::rename(entry.c_str(), (bad.path() + "/bad").c_str()) != 0 && errno != ENOENT))
      return false;
  }
  return true; // somebody keeps writing bad entries; the kernel is compiled, so nothing is lost
}

bool CubinCache::isWritable() const {
  const std::lock_guard lock(mutex_);
  return writable_;
}

void CubinCache::stopWriting(const std::string &why) {
  const std::lock_guard lock(mutex_);
  if (!writable_ && warning_)
    return;
  writable_ = false;
  warning_ = why + "; kernels are compiled again by each process";
}

std::optional<std::string> CubinCache::takeWarning() {
  const std::lock_guard lock(mutex_);
  return std::exchange(warning_, std::nullopt);
}

} // namespace deft::module_cache
