#include "runtime/module_cache/StoredKernels.h"

#include "compiler/support/GuardedFile.h"
#include "compiler/support/OpenedFile.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <sys/stat.h>
#include <tuple>

namespace deft::module_cache {

namespace fs = std::filesystem;
using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

/// A SHA-256: other names in the folder are temporaries, or nobody knows what.
bool isKey(const std::string &name) {
  constexpr std::size_t kDigits = 64;
  return name.size() == kDigits && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

/// The line behind its comment's stroke, without what a terminal would obey.
std::string firstLine(const std::string &path) {
  constexpr std::size_t kMost = 160;
  std::string line = support::beginningOf(path, kMost, support::Links::Refused);
  line = line.substr(0, line.find('\n'));
  line = line.substr(std::min(line.size(), line.starts_with("// ") ? std::size_t{3} : 0));
  std::erase_if(line, [](char c) { return c < ' ' || c > '~'; });
  return line;
}

int registersOf(const std::string &path) {
  const auto text = support::readGuarded(path, support::kMostCachedBytes, support::Trust::Private).bytes;
  const json report = json::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool isThere = report.is_object() && report.contains("registers") && report["registers"].is_number();
  return isThere ? report["registers"].get<int>() : 0;
}

} // namespace

std::vector<StoredKernel> storedKernels(const std::string &folder) {
  std::vector<StoredKernel> kernels;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string path = it->path().string(), key = it->path().filename().string();
    struct stat info{};
    if (!isKey(key) || ::lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
      continue;
    StoredKernel kernel{key, firstLine(path + "/kernel.cu"), registersOf(path + "/report.json"), 0,
                        info.st_mtime};
    std::error_code ignored;
    for (fs::directory_iterator file(path, ignored); !ignored && file != end; file.increment(ignored))
      if (struct stat one{}; ::lstat(file->path().c_str(), &one) == 0)
        kernel.bytes += one.st_size;
    kernels.push_back(std::move(kernel));
  }
  std::sort(kernels.begin(), kernels.end(), [](const StoredKernel &a, const StoredKernel &b) {
    return std::tie(b.stored, a.key) < std::tie(a.stored, b.key);
  });
  return kernels;
}

Result<void> removeKernel(const std::string &folder, const std::string &key) {
  if (!isKey(key))
    return Error{ErrorCode::Internal, "`" + key + "` is no key of a kernel", ""};
  const std::string path = folder + "/" + key;
  std::error_code error;
  fs::remove_all(path, error);
  if (error)
    return Error{ErrorCode::Environment, "cannot remove `" + path + "`: " + error.message(), ""};
  return {};
}

} // namespace deft::module_cache
