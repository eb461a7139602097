#pragma once

#include "runtime/device/Driver.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace deft::device {

struct DeviceFacts {
  std::string name;
  int major = 0; ///< compute capability
  int minor = 0;
  int multiprocessors = 0;
  std::size_t l2Bytes = 0;
  std::size_t memoryBytes = 0;
  int ordinal = 0; ///< as the driver counts
};

/// Asks for the facts of a GPU, of whatever age, without making a context on it.
support::Result<DeviceFacts> lookAt(const Driver &driver, int ordinal);

/// Compute capability 8.0 or newer; the error says what it is.
support::Result<void> checkSupported(const DeviceFacts &facts);

/// One GPU and its primary context, which all in the process share. Any thread may use it, and what is made
/// of it: calls make the context current for their own time where it is not, and use no stream that a program
/// knows of, so it may be capturing on any of its own. The stream is for tools, which want one, from one
/// thread at a time.
class Device {
public:
  /// Opens a GPU. One older than compute capability 8.0 is an error: its matrix units lack bf16. The calling
  /// thread's current context stays what it was.
  static support::Result<std::shared_ptr<Device>> open(std::shared_ptr<const Driver> driver, int ordinal = 0);
  /// With the machine's driver.
  static support::Result<std::shared_ptr<Device>> open(int ordinal = 0);
  ~Device();
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  const DeviceFacts &facts() const { return facts_; }
  const Driver &driver() const { return *driver_; }
  const cu::Api &api() const { return driver_->api(); }
  cu::Stream stream() const { return stream_; }
  support::Result<void> synchronize(const std::string &whatRan) const;
  /// Whether what is put on the stream becomes a graph's. The context is to be current.
  support::Result<bool> isCapturing(cu::Stream stream) const;

  /// While it lives, the device's context is the thread's current one.
  class [[nodiscard]] Current {
  public:
    explicit Current(const Device &device);
    ~Current();
    Current(const Current &) = delete;
    Current &operator=(const Current &) = delete;

  private:
    const cu::Api *pushed_ = nullptr; ///< null: it was current already
  };

private:
  friend class Buffer;
  Device() = default;
  std::shared_ptr<const Driver> driver_;
  cu::Device device_ = 0;
  cu::Context context_ = nullptr;
  cu::Stream stream_ = nullptr;
  cu::Stream copies_ = nullptr; ///< of buffers
  DeviceFacts facts_;
};

/// Memory of a device. It grows when asked for more and is kept for the next use; what becomes free is free
/// when the device has done what it is at, because the driver waits for that. Copies and fills are over when
/// a call returns, and go through a stream of their own: nobody may be using the memory.
class Buffer {
public:
  explicit Buffer(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~Buffer();
  Buffer(Buffer &&other) noexcept;
  Buffer &operator=(Buffer &&) = delete;

  /// Makes room for `bytes`; what was in it is lost when it must grow. `what` names it in errors.
  support::Result<void> reserve(std::size_t bytes, const std::string &what);
  support::Result<void> upload(const void *from, std::size_t bytes, const std::string &what);
  support::Result<void> fill(unsigned char value, std::size_t bytes);
  /// Fills all of the memory, however little of it is in use.
  support::Result<void> fill(unsigned char value) { return fill(value, bytes_); }
  support::Result<void> download(void *to, std::size_t bytes) const;

  template <typename T, typename Allocator>
  support::Result<void> upload(const std::vector<T, Allocator> &values, const std::string &what) {
    return upload(values.data(), values.size() * sizeof(T), what);
  }
  /// The address as kernels take it; null when nothing was asked for.
  template <typename T> T *as() const { return reinterpret_cast<T *>(static_cast<std::uintptr_t>(address_)); }

private:
  support::Result<void> finish(cu::Result enqueued, const std::string &whatFailed) const;

  std::shared_ptr<Device> device_;
  cu::DevicePtr address_ = 0;
  std::size_t bytes_ = 0;
};

/// A function out of a cubin (or PTX), with the shared memory it needs allowed.
class Kernel {
public:
  static support::Result<Kernel> load(std::shared_ptr<Device> device, const std::string &image,
                                      const std::string &entry, int threads, int smemBytes);
  ~Kernel();
  Kernel(Kernel &&other) noexcept;
  Kernel &operator=(Kernel &&) = delete;

  const std::string &entry() const { return entry_; }
  /// Blocks of it that run at a time on the whole device.
  int blocksAtOnce() const { return blocksAtOnce_; }
  /// Puts a launch on a stream of the device; no blocks are no launch. `params` as cuLaunchKernel takes them:
  /// a pointer to each.
  support::Result<void> launch(unsigned blocks, void **params, cu::Stream stream) const;
  /// Launches a kernel that waits by itself for the one before it on the stream: it may start early.
  support::Result<void> launchDependent(unsigned blocks, void **params, cu::Stream stream) const;
  /// Launches blocks of which so many at a time, which divide them, are a cluster; one is none.
  support::Result<void> launchClusters(unsigned blocks, int cluster, void **params, cu::Stream stream) const;
  support::Result<void> launch(unsigned blocks, void **params) const {
    return launch(blocks, params, device_->stream());
  }

private:
  explicit Kernel(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  support::Result<void> launched(cu::Result result) const;
  support::Result<void> launchWith(cu::LaunchAttribute attribute, unsigned blocks, void **params,
                                   cu::Stream stream) const;
  std::shared_ptr<Device> device_;
  std::string entry_;
  cu::Module module_ = nullptr;
  cu::Function function_ = nullptr;
  int threads_ = 0;
  int smemBytes_ = 0;
  int blocksAtOnce_ = 0;
};

} // namespace deft::device
