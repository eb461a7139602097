#include "runtime/config_cache/SetAside.h"

#include "compiler/support/AtomicFile.h"
#include "compiler/support/GuardedFile.h"

#include <filesystem>

namespace deft::config_cache {

using support::Error;
using support::ErrorCode;
using support::Result;

Result<std::string> setAside(const std::string &path) {
  const support::GuardedFile broken =
      support::readGuarded(path, support::kMostCachedBytes, support::Trust::Private);
  if (broken.state != support::GuardedFile::State::Read)
    return Error{ErrorCode::Environment, "cannot copy the broken `" + path + "` aside: " + broken.fault, ""};
  for (int number = 1;; ++number) {
    const std::string aside = path + ".broken-" + std::to_string(number);
    constexpr int kMost = 1000;
    std::error_code none; // a link that leads nowhere has the name, too
    if (std::filesystem::exists(std::filesystem::symlink_status(aside, none)) && number < kMost)
      continue;
    if (auto written = support::writeFileAtomically(aside, broken.bytes, kCachedMode); !written)
      return written.error();
    return aside;
  }
}

} // namespace deft::config_cache
