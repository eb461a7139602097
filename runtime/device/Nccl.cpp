#include "runtime/device/Nccl.h"

#include <dlfcn.h>

namespace deft::device {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

constexpr const char *kHint =
    "install version 2.14 or later: the package `libnccl2`, or the wheel `nvidia-nccl-cu13` "
    "(`nvidia-nccl-cu12`) "
    "with its folder nvidia/nccl/lib in LD_LIBRARY_PATH; a program that has loaded torch has it";

/// Of NCCL's number: 22809 is 2.28.9.
std::string versionText(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

} // namespace

Result<std::shared_ptr<const Nccl>> Nccl::load(const std::string &library) {
  const auto unusable = [](const std::string &why) { return Error{ErrorCode::Environment, why, kHint}; };
  void *handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return unusable("no NCCL: `" + library + "` cannot be loaded");
  std::shared_ptr<Nccl> loaded(new Nccl());
  const char *absent = nullptr;
#define DEFT_LOAD(result, member, symbol, parameters)                                                        \
  loaded->api_.member = reinterpret_cast<decltype(loaded->api_.member)>(::dlsym(handle, symbol));            \
  if (!loaded->api_.member)                                                                                  \
    absent = symbol;
  DEFT_NCCL_FUNCTIONS(DEFT_LOAD)
#undef DEFT_LOAD
  if (loaded->api_.getVersion)
    (void)loaded->api_.getVersion(&loaded->version_);
  if (absent)
    return unusable("NCCL is too old: it lacks `" + std::string(absent) + "`");
  if (loaded->version_ < nccl::kOldest)
    return unusable("NCCL " + loaded->version() + " is too old");
  return std::shared_ptr<const Nccl>(loaded);
}

std::string Nccl::version() const { return versionText(version_); }

Result<nccl::Id> Nccl::makeId() const {
  nccl::Id id{};
  if (const nccl::Result result = api_.getUniqueId(&id); result != nccl::kSuccess)
    return error("cannot begin a group of ranks", result, nullptr);
  return id;
}

Error Nccl::error(const std::string &whatFailed, nccl::Result result, nccl::Comm comm) const {
  const char *const text = api_.getErrorString(result);
  const char *const last = api_.getLastError(comm);
  std::string message = "NCCL " + version() + " " + whatFailed + ": " + (text ? text : "unknown error");
  if (last && *last)
    message += ": " + std::string(last);
  return Error{ErrorCode::Environment, message, "NCCL_DEBUG=INFO in the environment prints more"};
}

} // namespace deft::device
