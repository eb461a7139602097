#include "runtime/module_cache/EntryFiles.h"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace deft::module_cache {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporaryPrefix = ".new-";
constexpr std::time_t kStaleSeconds = 3600;

class Descriptor {
public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) {
      const int kept = errno;
      ::close(fd_);
      errno = kept;
    }
  }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  int get() const { return fd_; }
  int close() { return ::close(std::exchange(fd_, -1)); }

private:
  int fd_;
};

bool isPrivate(const struct stat &info) {
  return info.st_uid == ::geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::optional<std::string> readAll(int fd, std::size_t expectedBytes) {
  std::string bytes(expectedBytes, '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::read(fd, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return std::nullopt;
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

} // namespace

std::string makePrivateFolder(const std::string &path) {
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string prefix = path.substr(0, slash);
    if (::mkdir(prefix.c_str(), 0700) != 0 && errno != EEXIST) {
      // A read-only or foreign parent that already has the folder is no obstacle.
      const int why = errno;
      struct stat info{};
      if (::stat(prefix.c_str(), &info) != 0)
        return std::strerror(why);
    }
    if (slash == std::string::npos)
      break;
  }
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0)
    return std::strerror(errno);
  if (!S_ISDIR(info.st_mode))
    return "it is not a folder";
  if (info.st_uid != ::geteuid())
    return "it belongs to user " + std::to_string(info.st_uid) + ", not to " + std::to_string(::geteuid());
  if (!isPrivate(info))
    return "other users may write it";
  return {};
}

std::optional<std::array<std::string, 4>> readPrivateFiles(const std::string &folder,
                                                           const std::array<const char *, 4> &names) {
  const Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info{};
  if (directory.get() < 0 || ::fstat(directory.get(), &info) != 0 || !isPrivate(info))
    return std::nullopt;
  std::array<std::string, 4> contents;
  for (std::size_t i = 0; i < names.size(); ++i) {
    // O_NONBLOCK: a pipe in the place of a file must not hang the process.
    const Descriptor file(
        ::openat(directory.get(), names[i], O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file.get() < 0 || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || !isPrivate(info))
      return std::nullopt;
    auto bytes = readAll(file.get(), static_cast<std::size_t>(info.st_size));
    if (!bytes)
      return std::nullopt;
    contents[i] = std::move(*bytes);
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
  if (file.get() < 0)
    return false;
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return file.close() == 0; // a network file system may report a full disk only here
}

bool TemporaryFolder::renameTo(const std::string &path) {
  if (::rename(path_.c_str(), path.c_str()) != 0)
    return false;
  path_.clear();
  return true;
}

} // namespace deft::module_cache
