#pragma once

#include "compiler/support/Result.h"

#include <string>

namespace deft::config_cache {

/// Of new files in the cache: what others might write there would not be read again.
inline constexpr unsigned kCachedMode = 0644;

/// Keeps what a file of the cache that is no longer whole has beside it, so that nothing of it is lost; the
/// copy's name.
support::Result<std::string> setAside(const std::string &path);

} // namespace deft::config_cache
