#include "runtime/exec/cuda/CudaFiniteCheck.h"

#include "compiler/support/InOrder.h"
#include "runtime/exec/FiniteCheck.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace deft::exec {

using support::Result;

namespace {

using Bytes = std::vector<std::byte>;

/// What a run has read and written, on the host. Pages of the cache that the plan reads get numbers of their
/// own, and follow each other.
class Copies {
public:
  Copies(const device::Device &device, const spec::Variant &variant, const plan::Plan &plan,
         const CudaPointers &from, device::cu::Stream stream)
      : device_(device), variant_(variant), plan_(plan), from_(from), stream_(stream) {
    inputs_.queryCount = plan.queryCount();
    inputs_.cache = from.cache;
    inputs_.pageSize = pageSizeOf(variant);
    inputs_.qStride = from.qStride;
  }

  Result<void> make() {
    return support::inOrder([&] { return copyRows(); }, [&] { return copyTable(); },
                            [&] { return copyCache(from_.k, variant_.tensors.k, inputs_.cache.k, k_); },
                            [&] { return copyCache(from_.v, variant_.tensors.v, inputs_.cache.v, v_); },
                            [&] { return wait(); });
  }

  InputView inputs() const {
    InputView view = inputs_;
    view.q = reinterpret_cast<const std::uint16_t *>(q_.data());
    view.k = k_.data();
    view.v = v_.data();
    view.pageTable = table_.data();
    return view;
  }
  ResultView results() const {
    return {reinterpret_cast<const std::uint16_t *>(out_.data()), lse_.empty() ? nullptr : lse_.data(),
            from_.outStride};
  }

private:
  Result<void> copy(void *to, const void *from, std::size_t bytes) {
    if (bytes == 0)
      return {};
    return device_.driver().check(
        "cannot copy what the run has read and written",
        device_.api().memcpyDtoHAsync(to, reinterpret_cast<device::cu::DevicePtr>(from), bytes, stream_));
  }
  Result<void> wait() {
    return device_.driver().check("the run failed", device_.api().streamSynchronize(stream_));
  }

  Result<void> copyRows() {
    const auto rows = [&](const void *from, long long stride, const spec::TensorType &tensor, Bytes &to) {
      const long long packed = rowStrideOf(0, variant_, tensor), queries = plan_.queryCount();
      if (queries > 0)
        to.resize(static_cast<std::size_t>((queries - 1) * rowStrideOf(stride, variant_, tensor) + packed) *
                  static_cast<std::size_t>(tensor.elementBytes()));
      return copy(to.data(), from, to.size());
    };
    if (from_.lse)
      lse_.resize(static_cast<std::size_t>(plan_.queryCount()) *
                  static_cast<std::size_t>(variant_.queryHeads));
    return support::inOrder([&] { return rows(from_.q, from_.qStride, variant_.tensors.q, q_); },
                            [&] { return rows(from_.out, from_.outStride, variant_.tensors.out, out_); },
                            [&] { return copy(lse_.data(), from_.lse, lse_.size() * sizeof(float)); });
  }

  /// Numbers the pages that the plan reads; -1: an entry that it does not.
  Result<void> copyTable() {
    if (inputs_.pageSize == 0)
      return {};
    std::vector<int> entries(static_cast<std::size_t>(from_.pages));
    if (auto copied = support::inOrder(
            [&] { return copy(entries.data(), from_.pageTable, entries.size() * sizeof(int)); },
            [&] { return wait(); });
        !copied)
      return copied;
    table_.assign(entries.size(), -1);
    for (const abi::Run &run : plan_.runs)
      for (int at = run.location / inputs_.pageSize; at * inputs_.pageSize < run.location + run.tokens; ++at)
        if (const auto entry = static_cast<std::size_t>(at);
            entry < entries.size() && entries[entry] >= 0 && table_[entry] < 0) {
          table_[entry] = static_cast<int>(pages_.size());
          pages_.push_back(entries[entry]);
        }
    return {};
  }

  /// The elements from the first one of a token, or of so many that follow each other, to the last.
  long long span(const spec::TensorType &tensor, const abi::CacheLayout &layout, long long tokens) const {
    return (tokens - 1) * layout.tokenStride + (variant_.kvHeads - 1) * layout.headStride + tensor.dim;
  }

  Result<void> copyCache(const void *from, const spec::TensorType &tensor, abi::CacheLayout &layout,
                         Bytes &to) {
    const auto bytes = [&](long long elements) {
      return static_cast<std::size_t>(elements) * static_cast<std::size_t>(tensor.elementBytes());
    };
    if (inputs_.pageSize == 0) {
      to.resize(plan_.tableTokens > 0 ? bytes(span(tensor, layout, plan_.tableTokens)) : 0);
      return copy(to.data(), from, to.size());
    }
    const long long page = span(tensor, layout, inputs_.pageSize), apart = layout.pageStride;
    to.resize(pages_.size() * bytes(page));
    for (std::size_t p = 0; p < pages_.size(); ++p)
      if (auto copied = copy(to.data() + p * bytes(page),
                             static_cast<const std::byte *>(from) + bytes(pages_[p] * apart), bytes(page));
          !copied)
        return copied;
    layout.pageStride = page;
    return {};
  }

  const device::Device &device_;
  const spec::Variant &variant_;
  const plan::Plan &plan_;
  const CudaPointers &from_;
  device::cu::Stream stream_;
  InputView inputs_;
  Bytes q_, k_, v_, out_;
  std::vector<float> lse_;
  std::vector<int> table_, pages_;
};

} // namespace

Result<void> checkFinite(const device::Device &device, const spec::Variant &variant, const plan::Plan &plan,
                         const plan::Reach &reach, const CudaPointers &pointers, device::cu::Stream stream) {
  const device::Device::Current current(device);
  Copies copies(device, variant, plan, pointers, stream);
  if (auto made = copies.make(); !made)
    return made;
  if (auto found = findNotFinite(variant, plan, reach, copies.inputs(), copies.results()))
    return *found;
  return {};
}

} // namespace deft::exec
