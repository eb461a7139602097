#pragma once

#include "runtime/device/Device.h"
#include "runtime/device/HostMemory.h"
#include "runtime/device/Nccl.h"

#include <cstddef>
#include <span>
#include <vector>

namespace deft::device {

/// A rank of a group that sends memory of GPUs by NCCL. No call waits longer than the patience that it was
/// made with, whatever the other ranks do. For one thread at a time; a thread that looks at fault() while
/// others exchange needs the same lock.
class NcclGroup {
public:
  struct Options {
    int count = 1, rank = 0;
    double patienceSeconds = 10;
  };
  struct Message {
    int rank; ///< to whom, or from whom
    void *memory;
    std::size_t bytes;
  };

  /// All ranks call it with one id.
  static support::Result<std::unique_ptr<NcclGroup>> join(std::shared_ptr<const Nccl> nccl,
                                                          const std::shared_ptr<Device> &device,
                                                          const nccl::Id &id, const Options &options);
  /// Lets the others have what was sent last.
  ~NcclGroup();
  NcclGroup(const NcclGroup &) = delete;
  NcclGroup &operator=(const NcclGroup &) = delete;

  void setPatience(double seconds) { options_.patienceSeconds = seconds; }

  /// Puts all of them on the stream, as one operation; a graph can capture it. Both ends of a message name
  /// as many bytes.
  support::Result<void> exchange(std::span<const Message> sent, std::span<const Message> received,
                                 cu::Stream stream);

  /// What each rank says, as many bytes of each. Waits for all of them.
  support::Result<std::vector<std::vector<std::byte>>> gather(std::span<const std::byte> own);

  /// An error once NCCL has noticed that a rank is gone, or the network. Waits for nothing.
  support::Result<void> fault() const;

  /// Ends what is under way on the device, and the group. Waits for nothing.
  void abort();

private:
  NcclGroup(std::shared_ptr<const Nccl> nccl, std::shared_ptr<Device> device, const Options &options);

  support::Result<void> settle(const std::string &whatFailed, const std::string &whatIsLate,
                               nccl::Result result);
  support::Error late(const std::string &what);
  support::Result<void> awaitStream(const std::string &whatIsLate);

  std::shared_ptr<const Nccl> nccl_;
  std::shared_ptr<Device> device_;
  Options options_;
  nccl::Comm comm_ = nullptr; ///< null: there is none, or no longer
  cu::Stream stream_ = nullptr;
  Mark mark_;
  Buffer said_, heard_;
};

} // namespace deft::device
