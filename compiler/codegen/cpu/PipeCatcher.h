#pragma once

#include <string>
#include <thread>

namespace deft::codegen::cpu {

/// Catches what is written to a path: there is a named pipe, which a thread reads. For a file, which might
/// have to be removed when the process is stopped, LLVM would take the signals, which are the host's.
///
/// A process that forks meanwhile and goes on without another program has its ends, too, for as long as it
/// lives: that the pipe ends is nobody's sign here.
class PipeCatcher {
public:
  explicit PipeCatcher(const std::string &path);
  ~PipeCatcher(); ///< the pipe's name stays, as a file's would
  PipeCatcher(const PipeCatcher &) = delete;
  PipeCatcher &operator=(const PipeCatcher &) = delete;

  bool isReady() const { return thread_.joinable(); }
  /// All of it: nobody may write any more.
  std::string taken();

private:
  void catchAll();
  void drain();

  int read_ = -1, write_ = -1;
  int ended_ = -1; ///< an event: all is written
  std::thread thread_;
  std::string caught_;
};

} // namespace deft::codegen::cpu
