#pragma once

#include "compiler/support/Result.h"

#include <string>

namespace deft::config_cache {

/// The mode of new files in the cache: files that others may write would not be read again.
inline constexpr unsigned kCachedMode = 0644;

/// Copies a damaged file of the cache next to it, so that nothing is lost; returns the name of the
/// copy.
support::Result<std::string> setAside(const std::string &path);

} // namespace deft::config_cache
