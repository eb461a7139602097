#include "runtime/module_cache/EntryFiles.h"

#include "compiler/support/Descriptor.h"
#include "compiler/support/GuardedFile.h"
#include "compiler/support/WriteAll.h"

#include <cerrno>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace deft::module_cache {
namespace {

namespace fs = std::filesystem;
using support::Descriptor;

constexpr std::string_view kTemporaryPrefix = ".new-";
constexpr std::time_t kStaleSeconds = 3600;

} // namespace

std::optional<std::array<std::string, 4>> readPrivateFiles(const std::string &folder,
                                                           const std::array<const char *, 4> &names) {
  const Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (directory.get() < 0 || !support::isPrivateFolder(directory.get()))
    return std::nullopt;
  std::array<std::string, 4> contents;
  for (std::size_t i = 0; i < names.size(); ++i) {
    support::GuardedFile file =
        support::readGuardedIn(directory.get(), names[i], support::kMostCachedBytes, support::Trust::Private);
    if (file.state != support::GuardedFile::State::Read)
      return std::nullopt;
    contents[i] = std::move(file.bytes);
  }
  return contents;
}

void sweepTemporaries(const std::string &folder) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (!it->path().filename().string().starts_with(kTemporaryPrefix))
      continue;
    struct stat info{};
    std::error_code ignored;
    if (::lstat(it->path().c_str(), &info) == 0 && std::time(nullptr) - info.st_mtime > kStaleSeconds)
      fs::remove_all(it->path(), ignored);
  }
}

TemporaryFolder::TemporaryFolder(const std::string &parent) {
  std::string path = parent + "/" + std::string(kTemporaryPrefix) + "XXXXXX";
  if (::mkdtemp(path.data())) // 0700
    path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  if (path_.empty())
    return;
  const int kept = errno;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  errno = kept;
}

bool TemporaryFolder::write(const char *name, std::string_view bytes) {
  Descriptor file(::open((path_ + "/" + name).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.get() < 0 || !support::writeAll(file.get(), bytes))
    return false;
  return file.close() == 0; // a network file system may report a full disk only here
}

bool TemporaryFolder::renameTo(const std::string &path) {
  if (::rename(path_.c_str(), path.c_str()) != 0)
    return false;
  path_.clear();
  return true;
}

} // namespace deft::module_cache
