#pragma once

#include <cstdint>
#include <optional>
#include <string>

/// The types and dims of q, k, v and the output. Ask each tensor for its own elements, bytes or columns; do
/// not assume that two tensors are alike. If a backend needs that, a rule of it refuses other tensors
/// (kernels::Family).
namespace deft::spec {

// clang-format off: one row a line, in columns

/// Only caches have 8-bit floats: the finite E4M3 (no infinity, largest 448), and E5M2. Columns: id, word in
/// specs, bytes, names in device code (templates/deft/types.cuh), in MLIR, in C, and in Python's arrays.
//  ID      word      bytes                IR                in C          in Python
#define DEFT_DTYPES(X)                                                                                       \
  X(F16,    "f16",      2, "deft::f16",  Float16Type,      DEFT_F16,     "float16")                          \
  X(BF16,   "bf16",     2, "deft::bf16", BFloat16Type,     DEFT_BF16,    "bfloat16")                         \
  X(F8E4M3, "fp8_e4m3", 1, "deft::e4m3", Float8E4M3FNType, DEFT_F8_E4M3, "float8_e4m3fn")                    \
  X(F8E5M2, "fp8_e5m2", 1, "deft::e5m2", Float8E5M2Type,   DEFT_F8_E5M2, "float8_e5m2")

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

/// The type of one tensor: its vectors, one for each head of a token or query, are consecutive.
struct TensorType {
  DType dtype = DType::BF16;
  int dim = 0; ///< elements of a vector

  constexpr int elementBytes() const { return spec::elementBytes(dtype); }
  constexpr int rowBytes() const { return dim * elementBytes(); }
  bool operator==(const TensorType &) const = default;
};

struct Tensors {
  TensorType q, k, v, out;
  /// V lies in K's memory: a token's value is the beginning of its key, and there is no separate V.
  bool valueInKey = false;
  /// For a latent cache of bytes: the columns of V that share a float32 scale, which lies in the token's row.
  /// 0: no scales.
  int scaleColumns = 0;
  /// Both products are computed in e4m3, the cache's type: q and the weights are rounded to it (rule A12).
  bool byteProducts = false;

  bool operator==(const Tensors &) const = default;

  /// Four tensors with the same dim and dtype.
  static constexpr Tensors alike(int dim, DType dtype = DType::BF16) {
    const TensorType type{dtype, dim};
    return {type, type, type, type};
  }
  /// Whether all four have one dim, q, k and v have one dtype, and V has memory of its own.
  bool areAlike() const;

  constexpr bool hasScales() const { return scaleColumns > 0; }
  /// K's row in memory, for one head of a token. A row with scales consists of V's columns, one scale for
  /// each `scaleColumns` of them, and K's other columns in q's dtype; its elements count as bytes.
  constexpr TensorType keyRow() const {
    return {k.dtype, hasScales() ? ropeOffset() + (k.dim - v.dim) * q.elementBytes() : k.dim};
  }
  /// Where K's columns that V does not have begin, in bytes from the start of a row, if V is in K's memory.
  constexpr int ropeOffset() const {
    return v.rowBytes() + (hasScales() ? v.dim / scaleColumns * kScaleBytes : 0);
  }
  static constexpr int kScaleBytes = 4;
  /// The types in products: elements with scales are multiplied by them, and may be rounded to q's dtype.
  constexpr Tensors scaled() const {
    return hasScales() ? Tensors{q, {q.dtype, k.dim}, {q.dtype, v.dim}, out, valueInKey, 0, byteProducts}
                       : *this;
  }

  /// Bytes of one token in the cache, for one KV head.
  constexpr int cacheBytes() const { return keyRow().rowBytes() + (valueInKey ? 0 : v.rowBytes()); }
  /// For one row and one token: q . k, and the weight times v.
  constexpr int pairFlops() const { return 2 * (k.dim + v.dim); }
};

/// The dtype that `products` may name, and that the cache must then have.
inline constexpr DType kByteProducts = DType::F8E4M3;

/// Why no attention can have these tensors; none: they are valid. A backend may still not support them.
std::optional<std::string> faultOf(const Tensors &tensors);

/// Short texts: "128", "192 (v 128)", "576 (v 512, in k)"; "bf16", "bf16 (k f16, v f16)", "bf16 (k fp8_e4m3,
/// v fp8_e4m3, a scale for 128)", "bf16 (k fp8_e4m3, v fp8_e4m3, products fp8_e4m3)".
std::string dimText(const Tensors &tensors);
std::string dtypeText(const Tensors &tensors);

} // namespace deft::spec
