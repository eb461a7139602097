#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

/// A CUDA driver without a device: the memory of the "device" is the host's, and work on a stream is done at
/// once. Our kernels run as plain C++ (FakeKernels.h); graphs are recorded and replayed. It is a separate
/// library, which device::Driver::load opens instead of NVIDIA's (path: DEFT_FAKE_CUDA). So tests see which
/// calls a program makes, and in which order.
///
/// Device 0 is a GPU of compute capability 9.0 with 132 multiprocessors; device 1 has 8.0 and device 2 has
/// 7.5.
namespace deft::fake_cuda {

struct Call {
  std::string name; ///< "cuLaunchKernel"
  const void *stream = nullptr;
  std::size_t bytes = 0;   ///< copied or allocated
  std::string kernel = {}; ///< launched
  unsigned blocks = 0;
  int cluster = 1;                  ///< blocks
  unsigned smemBytes = 0;           ///< dynamic, of a block
  bool isDependent = false;         ///< may start before the previous kernel has ended
  std::vector<std::byte> args = {}; ///< the beginning of the first argument, as long as any kernel's
  const void *context = nullptr;    ///< current on the calling thread

  template <typename T> T argsAs() const {
    T value;
    std::memcpy(&value, args.data(), sizeof value);
    return value;
  }
};

/// The contents of a tensor map of this driver: the arguments that it was made from.
struct TensorMap {
  const void *address;
  unsigned long long rank, sizes[5], box[5];
};

/// The calls of all threads since the last call of this function, without queries (names, attributes,
/// versions, error texts) and changes of the current context.
std::vector<Call> takeCalls();

/// The attention that the kernels compute: softmax without hooks. A driver does not see template arguments.
struct Variant {
  int queryHeads = 2;
  int kvHeads = 1;
  int headDim = 16;
  int pageSize = 0; ///< 0: contiguous
  bool isBf16 = true;
  float scale = 1;
  /// For a variant that selects: groups of a query's heads, and lists; 0: the number of KV heads.
  int worthGroups = 0, lists = 0;
  /// For a latent cache: elements of q and of K, whose first headDim are V; 0: K and V are separate.
  int latentDim = 0;
  /// For a separate V of headDim elements: elements of q and of K; 0: also headDim.
  int otherKeyDim = 0;

  int keyDim() const { return latentDim > 0 ? latentDim : otherKeyDim > 0 ? otherKeyDim : headDim; }
};

/// Sets the variant of all later launches. The default is the environment variable DEFT_FAKE_CUDA_VARIANT:
/// "query_heads,kv_heads,head_dim,page_size,bf16|f16,scale", then ",groups,lists" if it selects (or 0,0 if it
/// does not but more follows), then ",latent" for a latent cache.
void setVariant(const Variant &variant);

/// All later calls of this function return this error; 0 ends that.
void failAt(const std::string &function, int error);

/// Whether events complete as soon as they are recorded, which is the default.
void setEventsDone(bool areDone);

/// What another library puts on a stream: it is done at once, or a capture takes it.
void enqueue(const void *stream, std::function<void()> work);

/// Of the driver's own functions: notes the call, gives what it is to return.
int note(Call call);

/// Bytes that are allocated, on the device and page-locked.
std::size_t allocatedBytes();

} // namespace deft::fake_cuda
