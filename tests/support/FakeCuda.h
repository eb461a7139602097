#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

/// A CUDA driver without a device: memory of the "device" is the host's, and what is put on a stream is done
/// at once. Our kernels are done in plain C++ (FakeKernels.h), graphs are recorded and replayed. It is a
/// library of its own, which device::Driver::load opens in place of NVIDIA's (path: DEFT_FAKE_CUDA), so that
/// tests see which calls a program makes and in which order.
///
/// Device 0 is a GPU of compute capability 9.0 with 132 multiprocessors, device 1 one of 8.0, device 2 one of
/// 7.5.
namespace deft::fake_cuda {

struct Call {
  std::string name; ///< "cuLaunchKernel"
  const void *stream = nullptr;
  std::size_t bytes = 0;   ///< copied or allocated
  std::string kernel = {}; ///< launched
  unsigned blocks = 0;
  int cluster = 1;                  ///< blocks
  bool isDependent = false;         ///< may begin before the kernel before it has ended
  std::vector<std::byte> args = {}; ///< the first argument's first bytes, as many as any kernel takes
  const void *context = nullptr;    ///< current on the calling thread

  template <typename T> T argsAs() const {
    T value;
    std::memcpy(&value, args.data(), sizeof value);
    return value;
  }
};

/// What a tensor map of this driver holds: what it was made for.
struct TensorMap {
  const void *address;
  unsigned long long rank, sizes[5], box[5];
};

/// The calls since the last time, of all threads. Questions (names, attributes, versions, errors' texts) and
/// changes of the current context are left out.
std::vector<Call> takeCalls();

/// What the kernels compute: softmax attention without hooks. A template's arguments do not reach a driver.
struct Variant {
  int queryHeads = 2;
  int kvHeads = 1;
  int headDim = 16;
  int pageSize = 0; ///< 0: contiguous
  bool isBf16 = true;
  float scale = 1;
  /// Where it selects: groups of a query's heads, and lists; 0: as many as KV heads.
  int worthGroups = 0, lists = 0;
  /// Of a latent cache, elements of q and of K, in which V is the first headDim; 0: K and V are separate.
  int latentDim = 0;
  /// Of a cache whose V has headDim elements of its own, those of q and of K; 0: as many.
  int otherKeyDim = 0;

  int keyDim() const { return latentDim > 0 ? latentDim : otherKeyDim > 0 ? otherKeyDim : headDim; }
};

/// Of all kernels launched from now on. Where nobody sets one: DEFT_FAKE_CUDA_VARIANT of the environment,
/// "query_heads,kv_heads,head_dim,page_size,bf16|f16,scale", ",groups,lists" where it selects (0,0 where it
/// does not), and ",latent" behind these of a latent cache.
void setVariant(const Variant &variant);

/// From now on calls of this function give this error; 0 ends it.
void failAt(const std::string &function, int error);

/// Whether events are over as soon as they are recorded, as they are from the start.
void setEventsDone(bool areDone);

/// What another library puts on a stream: it is done at once, or a capture takes it.
void enqueue(const void *stream, std::function<void()> work);

/// Of the driver's own functions: notes the call, gives what it is to return.
int note(Call call);

/// Bytes that are allocated, on the device and page-locked.
std::size_t allocatedBytes();

} // namespace deft::fake_cuda
