#include "runtime/exec/cuda/CudaFiniteCheck.h"

#include "compiler/support/InOrder.h"
#include "runtime/exec/FiniteCheck.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
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
    inputs_.pageSize = variant.cache.pageSize;
    inputs_.qStride = from.qStride;
  }

  Result<void> make() {
    return support::inOrder([&] { return copyRows(); }, [&] { return copyTable(); },
                            [&] { return copyKeys(); }, [&] { return copyValues(); }, [&] { return wait(); },
                            [&] { return joinParts(); });
  }

  InputView inputs() const {
    InputView view = inputs_;
    view.q = reinterpret_cast<const std::uint16_t *>(q_.data());
    view.k = k_.data();
    view.v = variant_.tensors.valueInKey ? k_.data() : v_.data();
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

  /// Whether a latent cache's columns lie in two tensors.
  bool areApart() const { return variant_.tensors.valueInKey && from_.v; }

  Result<void> copyKeys() {
    const spec::Tensors &tensors = variant_.tensors;
    return copyCache(from_.k, areApart() ? tensors.v : tensors.keyRow(), inputs_.cache.k, k_);
  }

  /// Where they are in K's memory, they have been copied with it.
  Result<void> copyValues() {
    const auto &[q, k, v, out, isInKey, scaleColumns, byteProducts] = variant_.tensors;
    if (!isInKey)
      return copyCache(from_.v, v, inputs_.cache.v, v_);
    if (areApart())
      return copyCache(from_.v, {k.dtype, k.dim - v.dim}, inputs_.cache.v, v_);
    inputs_.cache.v = inputs_.cache.k;
    return {};
  }

  /// One copy of them, as processors read it.
  Result<void> joinParts() {
    if (!areApart())
      return {};
    const auto &[q, k, v, out, isInKey, scaleColumns, byteProducts] = variant_.tensors;
    const auto bytes = [&](long long elements) {
      return static_cast<std::ptrdiff_t>(elements * k.elementBytes());
    };
    const abi::CacheLayout joined{static_cast<long long>(inputs_.pageSize) * k.dim, k.dim, k.dim};
    const auto pages = static_cast<long long>(pages_.size());
    Bytes whole(static_cast<std::size_t>(bytes(pages * joined.pageStride)));
    const auto place = [&](const Bytes &from, const abi::CacheLayout &layout, int columns, int at) {
      for (long long page = 0; page < pages; ++page)
        for (int slot = 0; slot < inputs_.pageSize; ++slot)
          std::copy_n(from.begin() + bytes(page * layout.pageStride + slot * layout.tokenStride),
                      bytes(columns),
                      whole.begin() + bytes(page * joined.pageStride + slot * joined.tokenStride + at));
    };
    place(k_, inputs_.cache.k, v.dim, 0);
    place(v_, inputs_.cache.v, k.dim - v.dim, v.dim);
    k_ = std::move(whole);
    inputs_.cache = {joined, joined};
    return {};
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
