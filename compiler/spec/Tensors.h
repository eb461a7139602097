#pragma once

#include <cstdint>
#include <optional>
#include <string>

/// What q, k, v and the output are made of. Everybody who counts elements, bytes or columns asks the tensor
/// that is meant, and nobody may count on two of them being alike but by its word: what a backend cannot do
/// yet is a rule of its own (kernels::Family).
namespace deft::spec {

/// 8-bit floats are of caches only: the finite kind of E4M3 (no infinity, largest 448), and E5M2.
enum class DType { F16, BF16, F8E4M3, F8E5M2 };

constexpr int elementBytes(DType dtype) {
  switch (dtype) {
  case DType::F16:
  case DType::BF16:
    return 2;
  case DType::F8E4M3:
  case DType::F8E5M2:
    return 1;
  }
  return 0;
}

/// Of one tensor: the vectors that it has for a head and a token, or a query, side by side.
struct TensorType {
  DType dtype = DType::BF16;
  int dim = 0; ///< elements of a vector

  constexpr int elementBytes() const { return spec::elementBytes(dtype); }
  constexpr int rowBytes() const { return dim * elementBytes(); }
  bool operator==(const TensorType &) const = default;
};

struct Tensors {
  TensorType q, k, v, out;
  /// V is K's memory: a token's value is the beginning of its key, and there is no V beside it.
  bool valueInKey = false;

  bool operator==(const Tensors &) const = default;

  /// All four of one dim and dtype.
  static constexpr Tensors alike(int dim, DType dtype = DType::BF16) {
    const TensorType type{dtype, dim};
    return {type, type, type, type};
  }
  /// Whether q, k, v and the output have one dim, and q, k and v one dtype, and V memory of its own.
  bool areAlike() const;

  /// Bytes of the cache that a token has for one KV head.
  constexpr int cacheBytes() const { return k.rowBytes() + (valueInKey ? 0 : v.rowBytes()); }
  /// Of one row and one token: q . k, and the weight times v.
  constexpr int pairFlops() const { return 2 * (k.dim + v.dim); }
};

/// What no attention can be made of; none: nothing is wrong. Whether a backend can is another question.
std::optional<std::string> faultOf(const Tensors &tensors);

/// For a line of text: "128", "192 (v 128)", "576 (v 512, in k)"; "bf16", "bf16 (k f16, v f16)".
std::string dimText(const Tensors &tensors);
std::string dtypeText(const Tensors &tensors);

} // namespace deft::spec
