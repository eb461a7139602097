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
  int ordinal = 0; ///< the driver's number
};

/// Gets the facts of a GPU of any age, without making a context on it.
support::Result<DeviceFacts> lookAt(const Driver &driver, int ordinal);

/// Requires compute capability 8.0 or newer; the error contains the actual one.
support::Result<void> checkSupported(const DeviceFacts &facts);

/// One GPU and its primary context, which all code in the process shares. Any thread may use it and objects
/// made with it. Calls make the context current while they run, if it is not, and use no stream that the
/// program knows, so its own streams may be capturing. The device's stream is for tools, from one thread at a
/// time.
class Device {
public:
  /// Opens a GPU. A compute capability below 8.0 is an error, because its matrix units lack bf16. The calling
  /// thread's current context does not change.
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
  /// Whether work on the stream becomes part of a graph. The context must be current.
  support::Result<bool> isCapturing(cu::Stream stream) const;

  /// Makes the device's context the thread's current one during its lifetime.
  class [[nodiscard]] Current {
  public:
    explicit Current(const Device &device);
    ~Current();
    Current(const Current &) = delete;
    Current &operator=(const Current &) = delete;

  private:
    const cu::Api *pushed_ = nullptr; ///< null: it was already current
  };

private:
  friend class Buffer;
  Device() = default;
  std::shared_ptr<const Driver> driver_;
  cu::Device device_ = 0;
  cu::Context context_ = nullptr;
  cu::Stream stream_ = nullptr;
  cu::Stream copies_ = nullptr; ///< for copies of buffers
  DeviceFacts facts_;
};

/// Memory of a device, which grows on request and is kept for the next use. The driver frees memory only
/// after the device has finished its work. Copies and fills are complete when a call returns, and use a
/// separate stream, so no other work may be using the memory.
class Buffer {
public:
  explicit Buffer(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~Buffer();
  Buffer(Buffer &&other) noexcept;
  Buffer &operator=(Buffer &&) = delete;

  /// Makes room for `bytes`; growing loses the contents. `what` names it in errors.
  support::Result<void> reserve(std::size_t bytes, const std::string &what);
  support::Result<void> upload(const void *from, std::size_t bytes, const std::string &what);
  support::Result<void> fill(unsigned char value, std::size_t bytes);
  /// Fills all of the memory, including the part that is not in use.
  support::Result<void> fill(unsigned char value) { return fill(value, bytes_); }
  support::Result<void> download(void *to, std::size_t bytes) const;

  template <typename T, typename Allocator>
  support::Result<void> upload(const std::vector<T, Allocator> &values, const std::string &what) {
    return upload(values.data(), values.size() * sizeof(T), what);
  }
  /// The address for kernels; null if nothing was reserved.
  template <typename T> T *as() const { return reinterpret_cast<T *>(static_cast<std::uintptr_t>(address_)); }

private:
  support::Result<void> finish(cu::Result enqueued, const std::string &whatFailed) const;

  std::shared_ptr<Device> device_;
  cu::DevicePtr address_ = 0;
  std::size_t bytes_ = 0;
};

/// A function from a cubin (or PTX), with permission for the shared memory that it needs.
class Kernel {
public:
  static support::Result<Kernel> load(std::shared_ptr<Device> device, const std::string &image,
                                      const std::string &entry, int threads, int smemBytes);
  ~Kernel();
  Kernel(Kernel &&other) noexcept;
  Kernel &operator=(Kernel &&) = delete;

  const std::string &entry() const { return entry_; }
  /// Its blocks that the whole device runs at a time.
  int blocksAtOnce() const { return blocksAtOnce_; }
  /// Puts a launch on a stream of the device; 0 blocks: no launch. `params` are those of cuLaunchKernel: a
  /// pointer to each parameter. Each block gets `unusedSmem` bytes of shared memory less than was asked for.
  support::Result<void> launch(unsigned blocks, void **params, cu::Stream stream, int unusedSmem = 0) const;
  /// Launches a kernel that itself waits for the previous one on the stream, so it may start early.
  support::Result<void> launchDependent(unsigned blocks, void **params, cu::Stream stream) const;
  /// Launches blocks in clusters of `cluster`, which must divide their number; 1: no clusters.
  support::Result<void> launchClusters(unsigned blocks, int cluster, void **params, cu::Stream stream,
                                       int unusedSmem = 0) const;
  support::Result<void> launch(unsigned blocks, void **params) const {
    return launch(blocks, params, device_->stream());
  }

private:
  explicit Kernel(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  support::Result<void> launched(cu::Result result) const;
  support::Result<void> launchWith(cu::LaunchAttribute attribute, unsigned blocks, void **params,
                                   cu::Stream stream, int unusedSmem = 0) const;
  std::shared_ptr<Device> device_;
  std::string entry_;
  cu::Module module_ = nullptr;
  cu::Function function_ = nullptr;
  int threads_ = 0;
  int smemBytes_ = 0;
  int blocksAtOnce_ = 0;
};

} // namespace deft::device
