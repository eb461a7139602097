#include "tools/deftc/common/FilesInUse.h"

#include <filesystem>
#include <sys/stat.h>

namespace deft::cli {

namespace fs = std::filesystem;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

Error overwrites(const std::string &output, const std::string &input) {
  return {ErrorCode::Usage,
          "`" + output + "` would be written over `" + input + "`, which this command reads",
          "name another file"};
}

bool isSpecial(const std::string &path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
}

} // namespace

FilesInUse::File FilesInUse::File::at(const std::string &path) {
  File file;
  file.path = path;
  std::error_code none;
  file.canonical = fs::weakly_canonical(fs::absolute(path, none), none).string();
  if (struct stat info{}; ::stat(path.c_str(), &info) == 0) {
    file.exists = true;
    file.device = info.st_dev;
    file.inode = info.st_ino;
  }
  return file;
}

bool FilesInUse::File::isSame(const File &other) const {
  return (exists && other.exists && device == other.device && inode == other.inode) ||
         (!canonical.empty() && canonical == other.canonical);
}

Result<void> FilesInUse::reads(const std::string &path) {
  if (path.empty() || isSpecial(path))
    return {};
  File input = File::at(path);
  for (const File &output : outputs_)
    if (output.isSame(input))
      return overwrites(output.path, path);
  inputs_.push_back(std::move(input));
  return {};
}

Result<void> FilesInUse::readsFolder(const std::string &folder) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (auto read = reads(it->path().string()); !read)
      return read;
  return {};
}

Result<void> FilesInUse::writes(const std::string &path) {
  if (path.empty() || path == "-" || isSpecial(path))
    return {};
  File output = File::at(path);
  for (const File &input : inputs_)
    if (input.isSame(output))
      return overwrites(path, input.path);
  outputs_.push_back(std::move(output));
  return {};
}

Result<void> FilesInUse::writesInto(const std::string &folder) const {
  std::error_code none;
  const std::string canonical = fs::weakly_canonical(fs::absolute(folder, none), none).string();
  for (const File &input : inputs_)
    if (fs::path(input.canonical).parent_path() == canonical)
      return Error{ErrorCode::Usage, "`" + folder + "` holds `" + input.path + "`, which this command reads",
                   "name another folder for the output"};
  return {};
}

} // namespace deft::cli
