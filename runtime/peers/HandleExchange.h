#pragma once

#include "compiler/support/Result.h"

#include <cstdint>
#include <string>

namespace deft::peers {

/// A file descriptor, closed by the destructor.
class FileHandle {
public:
  FileHandle() = default;
  explicit FileHandle(int number) : number_(number) {}
  FileHandle(FileHandle &&other) noexcept : number_(other.number_) { other.number_ = -1; }
  FileHandle &operator=(FileHandle &&other) noexcept;
  ~FileHandle();

  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

private:
  int number_ = -1;
};

/// Ranks of a host, as processes or threads, send each other file descriptors of GPU memory. Each rank has a
/// socket, which is found by the group's name. No file system holds the names, so none remain.
class HandleExchange {
public:
  struct Handed {
    int rank = 0;
    std::int64_t bytes = 0; ///< of the memory
    FileHandle handle;
  };

  static support::Result<HandleExchange> open(const std::string &group, int rank);

  /// Sends to a rank that has opened its own end. The caller keeps the memory's handle.
  support::Result<void> send(int toRank, int handle, std::int64_t bytes) const;
  /// The next one from a process of the same user.
  support::Result<Handed> receive(double timeoutSeconds) const;

private:
  HandleExchange(std::string group, int rank, FileHandle socket)
      : group_(std::move(group)), rank_(rank), socket_(std::move(socket)) {}

  std::string group_;
  int rank_;
  FileHandle socket_;
};

} // namespace deft::peers
