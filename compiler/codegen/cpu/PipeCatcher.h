#pragma once

#include <string>
#include <thread>

namespace deft::codegen::cpu {

/// Collects everything that is written to a path: the path is a named pipe, which a thread reads. For a
/// regular file, LLVM would install signal handlers to remove it on a signal, but signals belong to the host.
///
/// A process that forks now and does not exec keeps the ends of the pipe open as long as it lives. So this
/// class does not wait for the end of the pipe.
class PipeCatcher {
public:
  explicit PipeCatcher(const std::string &path);
  ~PipeCatcher(); ///< leaves the pipe's name in place, like a file's
  PipeCatcher(const PipeCatcher &) = delete;
  PipeCatcher &operator=(const PipeCatcher &) = delete;

  bool isReady() const { return thread_.joinable(); }
  /// Everything that was written. All writers must be done.
  std::string taken();

private:
  void catchAll();
  void drain();

  int read_ = -1, write_ = -1;
  int ended_ = -1; ///< an event: everything is written
  std::thread thread_;
  std::string caught_;
};

} // namespace deft::codegen::cpu
