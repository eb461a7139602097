#pragma once

namespace deft::config_cache {

/// The result of reading a file.
enum class FileState {
  Good,
  Absent,
  Broken,     ///< not JSON, or not of this format
  Unreadable, ///< cannot be opened, is not a regular file, or is too large
  Untrusted,  ///< in deftc's own cache, but owned by another user, or writable by others
  Unknown,    ///< of another version; not changed
};

} // namespace deft::config_cache
