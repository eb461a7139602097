#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

/// File operations of the cache, on folders and files that belong only to this user.
namespace deft::module_cache {

/// The contents of files in a folder. None unless the folder and each file belong to this user and are not
/// writable by others, no name is a symbolic link, and each file is regular and has at most
/// support::kMostCachedBytes.
std::optional<std::array<std::string, 4>> readPrivateFiles(const std::string &folder,
                                                           const std::array<const char *, 4> &names);

/// Removes temporary folders that a killed process left more than an hour ago.
void sweepTemporaries(const std::string &folder);

/// A temporary folder below `parent`; the destructor removes it unless it was renamed.
class TemporaryFolder {
public:
  explicit TemporaryFolder(const std::string &parent);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  bool ok() const { return !path_.empty(); }
  const std::string &path() const { return path_; }
  /// Returns false and sets errno on failure, like the other functions.
  bool write(const char *name, std::string_view bytes);
  bool renameTo(const std::string &path);

private:
  std::string path_;
};

} // namespace deft::module_cache
