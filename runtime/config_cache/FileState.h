#pragma once

namespace deft::config_cache {

/// What a file turned out to be.
enum class FileState {
  Good,
  Absent,
  Broken,     ///< no JSON, or not of this format
  Unreadable, ///< there, but it cannot be opened, is no regular file or is too large
  Untrusted,  ///< in deftc's own cache, but of another user, or others may write it
  Unknown,    ///< of another version: left alone
};

} // namespace deft::config_cache
