#include "runtime/exec/RandomInputs.h"

#include "runtime/exec/Half.h"
#include "runtime/exec/ScaledRow.h"
#include "runtime/exec/SizedParams.h"
#include "runtime/exec/SplitMix.h"

#include <algorithm>
#include <thread>

namespace deft::exec {

namespace {

constexpr std::uint16_t kNaN = 0x7fff; // in f16 and in bf16; its bytes, in both 8-bit types

/// A stream of values for one tensor of one seed.
class Stream {
public:
  Stream(std::uint64_t seed, std::uint64_t tensor, spec::DType dtype)
      : base_(scramble(scramble(seed) + tensor)), dtype_(dtype) {}

  /// Fills `count` elements of `memory` from `first` on with the stream's values from `firstIndex` on.
  void fill(void *memory, long long first, int count, std::uint64_t firstIndex) const {
    for (int i = 0; i < count; ++i)
      setBitsAt(memory, first + i, dtype_, fromFloat(normal(scramble(base_ ^ (firstIndex + i))), dtype_));
  }

  /// Values for scales: from 0.5 up to 1.5, unordered, so that products with swapped scales differ.
  float scale(std::uint64_t index) const {
    return 0.5f + static_cast<float>(scramble(base_ ^ index) >> 40) * 0x1p-24f;
  }

private:
  std::uint64_t base_;
  spec::DType dtype_;
};

} // namespace

Inputs makeRandomInputs(const spec::Variant &variant, const tree::KvTree &tree,
                        const tree::CachePlacement &placement, std::vector<ParamValue> params,
                        std::uint64_t seed, int threads) {
  Inputs inputs;
  inputs.queryCount = static_cast<int>(tree.queries().size());
  inputs.cache = cacheLayoutsOf(variant);
  inputs.pageTable = placement.pageTable;
  inputs.params = placeSizedParams(variant, tree, placement, std::move(params), seed);

  const spec::Tensors &tensors = variant.tensors;
  const Stream q(seed, 0, tensors.q.dtype), k(seed, 1, tensors.k.dtype), v(seed, 2, tensors.v.dtype);
  const std::size_t rowElements = static_cast<std::size_t>(variant.queryHeads) * tensors.q.dim;
  inputs.q.resize(tree.queries().size() * rowElements);
  for (std::size_t i = 0; i < tree.queries().size(); ++i)
    q.fill(inputs.q.data(), static_cast<long long>(i * rowElements), static_cast<int>(rowElements),
           i * rowElements);

  const Stream scales(seed, 3, tensors.q.dtype), rope(seed, 4, tensors.q.dtype);
  const std::size_t poolRows = static_cast<std::size_t>(placement.poolTokens()) * variant.kvHeads;
  const auto words = [&](const spec::TensorType &tensor) { return poolRows * tensor.rowBytes() / 2; };
  inputs.k.assign(words(tensors.keyRow()), kNaN);
  if (!tensors.valueInKey)
    inputs.v.assign(words(tensors.v), kNaN);

  const auto fillScaled = [&](long long first, std::uint64_t row) {
    const int ropeDim = tensors.k.dim - tensors.v.dim;
    k.fill(inputs.k.data(), first, tensors.v.dim, row * static_cast<std::uint64_t>(tensors.v.dim));
    for (int column = 0; column < tensors.v.dim; column += tensors.scaleColumns)
      setScale(
          tensors, inputs.k.data(), first, column,
          scales.scale(row * static_cast<std::uint64_t>(tensors.v.dim) + static_cast<std::uint64_t>(column)));
    rope.fill(const_cast<std::byte *>(ropeOf(tensors, inputs.k.data(), first)), 0, ropeDim,
              row * static_cast<std::uint64_t>(ropeDim));
  };
  // A token's values depend on its index over all nodes in their order.
  const auto fillTokens = [&](const tree::Node &node, std::uint64_t firstToken, int begin, int end) {
    for (int t = begin; t < end; ++t)
      for (int head = 0; head < variant.kvHeads; ++head) {
        const int location = node.location + t;
        const std::uint64_t row = (firstToken + t) * variant.kvHeads + head;
        const long long key = inputs.keyAt(location, placement.pageSize, head);
        if (tensors.hasScales())
          fillScaled(key, row);
        else
          k.fill(inputs.k.data(), key, tensors.k.dim, row * tensors.k.dim);
        if (!tensors.valueInKey)
          v.fill(inputs.v.data(), inputs.valueAt(location, placement.pageSize, head), tensors.v.dim,
                 row * tensors.v.dim);
      }
  };
  const auto fillShare = [&](int share, int shares) { // the same part of every node
    std::uint64_t firstToken = 0;
    for (const tree::Node &node : tree.nodes()) {
      const auto cut = [&](int i) {
        return static_cast<int>(static_cast<long long>(node.tokens) * i / shares);
      };
      fillTokens(node, firstToken, cut(share), cut(share + 1));
      firstToken += node.tokens;
    }
  };
  std::vector<std::jthread> others;
  for (int i = 1; i < threads; ++i)
    others.emplace_back(fillShare, i, threads);
  fillShare(0, std::max(threads, 1));
  others.clear(); // waits
  return inputs;
}

} // namespace deft::exec
