#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

/// File work of the cache: folders and files that belong to this user alone.
namespace deft::module_cache {

/// The contents of files in a folder. None unless the folder and each file belong to this user, are
/// not writable by others, no name is a symbolic link, and each is a regular file of at most
/// support::kMostCachedBytes.
std::optional<std::array<std::string, 4>> readPrivateFiles(const std::string &folder,
                                                           const std::array<const char *, 4> &names);

/// Removes temporary folders that a killed process left more than an hour ago.
void sweepTemporaries(const std::string &folder);

/// A folder of its own below `parent`, removed at the end unless it was renamed.
class TemporaryFolder {
public:
  explicit TemporaryFolder(const std::string &parent);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  bool ok() const { return !path_.empty(); }
  const std::string &path() const { return path_; }
  /// False with errno set; so are the others.
  bool write(const char *name, std::string_view bytes);
  bool renameTo(const std::string &path);

private:
  std::string path_;
};

} // namespace deft::module_cache
