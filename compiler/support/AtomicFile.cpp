#include "compiler/support/AtomicFile.h"

#include "compiler/support/Descriptor.h"
#include "compiler/support/WriteAll.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace deft::support {
namespace {

Error systemError(const char *what, const std::string &path) {
  return {
      ErrorCode::Environment, std::string("cannot ") + what + " `" + path + "`: " + std::strerror(errno), {}};
}

/// With the two numbers where the file is larger than this process may make one.
Error cannotWrite(const std::string &path, std::size_t bytes) {
  Error error = systemError("write", path);
  rlimit limit{};
  if (errno == EFBIG && ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes)
    error.hint = "it has " + std::to_string(bytes) + " bytes, this process may write " +
                 std::to_string(limit.rlim_cur) + " (`ulimit -f`)";
  return error;
}

/// Whether a name is that of an open file, as /dev/stdout leads to.
bool isDescriptor(const std::string &path) {
  return path.starts_with("/proc/") && path.find("/fd/") != std::string::npos;
}

/// The file that a name stands for, through links, which stay; it need not be there yet. Empty: whichever
/// file is open.
std::string behindLinks(const std::string &path) {
  constexpr int kMostLinks = 40; // as many as the system follows
  namespace fs = std::filesystem;
  fs::path place(path);
  std::error_code none;
  for (int i = 0; i < kMostLinks && fs::is_symlink(place, none); ++i) {
    if (isDescriptor(place.string()))
      return {};
    place = place.parent_path() / fs::read_symlink(place, none);
  }
  return place.string();
}

std::string folderOf(const std::string &path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

/// Beside `path`, with what the caller's mask leaves of the mode. mkstemp would make it private, and the mask
/// can only be read by setting it, which would race with other threads.
int openTemporary(const std::string &path, unsigned mode, std::string &name) {
  static std::atomic<unsigned> count{0};
  for (;;) {
    name = path + "." + std::to_string(::getpid()) + "-" + std::to_string(count++) + ".tmp";
    const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, static_cast<mode_t>(mode));
    if (fd >= 0 || errno != EEXIST)
      return fd;
  }
}

/// A pipe, a device or an open file, which nothing may take the place of.
Result<void> writeInto(const std::string &path, std::string_view bytes) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (file.get() < 0 || !writeAll(file.get(), bytes) || file.close() != 0)
    return systemError("write", path);
  return {};
}

} // namespace

Result<void> writeFileAtomically(const std::string &path, std::string_view bytes, unsigned newMode) {
  struct stat old{};
  const bool isThere = ::stat(path.c_str(), &old) == 0;
  const std::string place = behindLinks(path);
  if (place.empty() || (isThere && !S_ISREG(old.st_mode) && !S_ISDIR(old.st_mode)))
    return writeInto(path, bytes);
  // A rename would ask the folder alone.
  if (isThere && ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0)
    return systemError("write", path);
  std::string temporary;
  Descriptor file(openTemporary(place, newMode, temporary));
  if (file.get() < 0)
    return systemError("write", path);
  constexpr mode_t kPermissions = 07777;
  if (!writeAll(file.get(), bytes) || (isThere && ::fchmod(file.get(), old.st_mode & kPermissions) != 0) ||
      ::fsync(file.get()) != 0 || file.close() != 0 || ::rename(temporary.c_str(), place.c_str()) != 0) {
    Error error = cannotWrite(path, bytes.size());
    ::unlink(temporary.c_str());
    return error;
  }
  // Without this the rename itself may be lost in a crash. Some file systems refuse it; the data is safe then
  // too.
  Descriptor directory(::open(folderOf(place).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0)
    ::fsync(directory.get());
  return {};
}

Result<void> checkWritable(const std::string &path) {
  struct stat old{};
  const bool isThere = ::stat(path.c_str(), &old) == 0;
  const bool isDirectory = isThere && S_ISDIR(old.st_mode);
  if (isDirectory)
    errno = EISDIR;
  if (isDirectory || (isThere && ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0))
    return systemError("write", path);
  const std::string place = behindLinks(path);
  if (place.empty() || (isThere && !S_ISREG(old.st_mode)))
    return {};
  // Where the new bytes get their name.
  if (::faccessat(AT_FDCWD, folderOf(place).c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    return systemError("write", path);
  return {};
}

Result<void> checkWritableFolder(const std::string &folder) {
  namespace fs = std::filesystem;
  std::error_code none;
  const bool isThere = fs::is_directory(folder, none);
  fs::path there = fs::absolute(folder, none);
  while (!fs::exists(there, none) && there.has_relative_path())
    there = there.parent_path();
  // Of what is no folder it asks for one.
  if (::faccessat(AT_FDCWD, (there / "").c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    return systemError(isThere ? "write into" : "make the folder", folder);
  return {};
}

Result<std::string> readFile(const std::string &path, std::size_t maxBytes) {
  const OpenedFile opened = openNamed(path);
  if (opened.fault.empty())
    return readOpened(opened.file.get(), path, maxBytes);
  const bool isPipe = opened.file.get() >= 0 && S_ISFIFO(opened.info.st_mode);
  return Error{ErrorCode::Environment, "cannot read `" + path + "`: " + opened.fault,
               isPipe ? "for a pipe use /dev/stdin or `<(command)`" : ""};
}

} // namespace deft::support
