#include "runtime/config_cache/OwnFile.h"

#include "runtime/config_cache/SetAside.h"

#include <filesystem>

namespace deft::config_cache {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

/// Whether there is an empty file: nothing is lost when it is replaced.
bool isEmptyFile(const std::string &path) {
  std::error_code none;
  return std::filesystem::is_regular_file(path, none) && std::filesystem::file_size(path, none) == 0;
}

} // namespace

support::Trust trustIn(Owner owner) {
  return owner == Owner::Deftc ? support::Trust::Private : support::Trust::Anyone;
}

unsigned modeIn(Owner owner) {
  constexpr unsigned kSharedMode = 0666; // of new files that somebody names
  return owner == Owner::Deftc ? kCachedMode : kSharedMode;
}

Result<void> makeFolderOf(const std::string &path, Owner owner) {
  std::error_code failure;
  const std::string folder = std::filesystem::absolute(path, failure).parent_path().string();
  if (owner == Owner::Deftc) {
    const std::string fault = support::makePrivateFolder(folder);
    return fault.empty()
               ? Result<void>()
               : Error{ErrorCode::Environment, "cannot keep configs in `" + folder + "`: " + fault, ""};
  }
  if (std::filesystem::create_directories(folder, failure); failure)
    return Error{ErrorCode::Environment, "cannot make the folder `" + folder + "`: " + failure.message(), ""};
  return {};
}

Result<void> checkOwn(const FileFacts &file, const std::string &path, Owner owner, const DeviceKey &device) {
  if (file.state == FileState::Good && file.device != device)
    return Error{
        ErrorCode::Environment,
        "`" + path + "` is left as it is: it is of " + file.device.text() + ", not of " + device.text(), ""};
  const bool isForeign = file.state == FileState::Broken && owner == Owner::User && !isEmptyFile(path);
  if (isForeign || file.state == FileState::Unknown || file.state == FileState::Unreadable ||
      file.state == FileState::Untrusted)
    return Error{ErrorCode::Environment, file.message + "; it is left as it is",
                 isForeign ? "name another file, or remove it first" : ""};
  return {};
}

} // namespace deft::config_cache
