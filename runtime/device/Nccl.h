#pragma once

#include "compiler/support/Result.h"
#include "runtime/device/NcclApi.h"

#include <memory>
#include <string>

namespace deft::device {

/// NCCL's library. It stays loaded for the life of the process, as the driver does.
class Nccl {
public:
  /// Environment errors say whether it is missing or too old, and what to install. A library that the process
  /// has loaded already (torch brings its own) is found by its name.
  static support::Result<std::shared_ptr<const Nccl>> load(const std::string &library = "libnccl.so.2");

  const nccl::Api &api() const { return api_; }
  /// "2.28.9"
  std::string version() const;

  /// What ranks need to find each other: one of them makes it, and hands it to all others.
  support::Result<nccl::Id> makeId() const;

  /// "cannot send to rank 1: unhandled system error". `comm` may be null.
  support::Error error(const std::string &whatFailed, nccl::Result result, nccl::Comm comm) const;

private:
  Nccl() = default;
  nccl::Api api_;
  int version_ = 0;
};

} // namespace deft::device
