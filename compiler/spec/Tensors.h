#pragma once

#include <cstdint>
#include <optional>
#include <string>

/// The types and dims of q, k, v and the output. Ask the tensor in question for elements, bytes or columns,
/// and do not assume that two tensors are alike: a rule of a backend says what it cannot do yet
/// (kernels::Family).
namespace deft::spec {

// clang-format off: one row a line, in columns

/// 8-bit floats are of caches only: the finite kind of E4M3 (no infinity, largest 448), and E5M2. What they are
/// called in specs, in device code (templates/deft/types.cuh), in MLIR, and by libraries of arrays.
//  ID      word      bytes                IR                in Python
#define DEFT_DTYPES(X)                                                                                       \
  X(F16,    "f16",      2, "deft::f16",  Float16Type,      "float16")                                        \
  X(BF16,   "bf16",     2, "deft::bf16", BFloat16Type,     "bfloat16")                                       \
  X(F8E4M3, "fp8_e4m3", 1, "deft::e4m3", Float8E4M3FNType, "float8_e4m3fn")                                  \
  X(F8E5M2, "fp8_e5m2", 1, "deft::e5m2", Float8E5M2Type,   "float8_e5m2")

// clang-format on

enum class DType {
#define DEFT_DTYPE_ID(ID, ...) ID,
  DEFT_DTYPES(DEFT_DTYPE_ID)
#undef DEFT_DTYPE_ID
};

constexpr int elementBytes(DType dtype) {
#define DEFT_DTYPE_BYTES(ID, WORD, BYTES, ...) BYTES,
  constexpr int bytes[] = {DEFT_DTYPES(DEFT_DTYPE_BYTES)};
#undef DEFT_DTYPE_BYTES
  return bytes[static_cast<int>(dtype)];
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
  /// Of a latent cache of bytes: columns of V that share a float32 scale, which lies in the token's row. 0:
  /// there are no scales.
  int scaleColumns = 0;
  /// Both products are of e4m3, as the cache is: q and the weights are rounded to it (rule A12).
  bool byteProducts = false;

  bool operator==(const Tensors &) const = default;

  /// All four of one dim and dtype.
  static constexpr Tensors alike(int dim, DType dtype = DType::BF16) {
    const TensorType type{dtype, dim};
    return {type, type, type, type};
  }
  /// Whether q, k, v and the output have one dim, and q, k and v one dtype, and V memory of its own.
  bool areAlike() const;

  constexpr bool hasScales() const { return scaleColumns > 0; }
  /// What K's memory has for a head and a token. A row with scales holds, side by side, V's columns, a scale
  /// for each `scaleColumns` of them, and the other columns in q's dtype; its elements are bytes.
  constexpr TensorType keyRow() const {
    return {k.dtype, hasScales() ? ropeOffset() + (k.dim - v.dim) * q.elementBytes() : k.dim};
  }
  /// Of K's columns that V does not have, in bytes from the beginning of a row; V lies in K's memory.
  constexpr int ropeOffset() const {
    return v.rowBytes() + (hasScales() ? v.dim / scaleColumns * kScaleBytes : 0);
  }
  static constexpr int kScaleBytes = 4;
  /// As products take them: what has scales is multiplied by them, and rounded to q's dtype.
  constexpr Tensors scaled() const {
    return hasScales() ? Tensors{q, {q.dtype, k.dim}, {q.dtype, v.dim}, out, valueInKey, 0, byteProducts}
                       : *this;
  }

  /// Bytes of the cache that a token has for one KV head.
  constexpr int cacheBytes() const { return keyRow().rowBytes() + (valueInKey ? 0 : v.rowBytes()); }
  /// Of one row and one token: q . k, and the weight times v.
  constexpr int pairFlops() const { return 2 * (k.dim + v.dim); }
};

/// What `products` may name, and of what type a cache is beside it.
inline constexpr DType kByteProducts = DType::F8E4M3;

/// What no attention can be made of; none: nothing is wrong. Whether a backend can is another question.
std::optional<std::string> faultOf(const Tensors &tensors);

/// For a line of text: "128", "192 (v 128)", "576 (v 512, in k)"; "bf16", "bf16 (k f16, v f16)",
/// "bf16 (k fp8_e4m3, v fp8_e4m3, a scale for 128)", "bf16 (k fp8_e4m3, v fp8_e4m3, products fp8_e4m3)".
std::string dimText(const Tensors &tensors);
std::string dtypeText(const Tensors &tensors);

} // namespace deft::spec
