#pragma once

#include "compiler/codegen/cpu/Emitter.h"

namespace deft::codegen::cpu {

/// Tokens of one `attend` call: K and V of a block stay in the first two levels of cache between the passes
/// over them.
constexpr int kBlockTokens = 64;
/// Tokens whose scores for a group of rows share a vector.
constexpr int kQuad = abi::kCpuTokenPad;
constexpr int kBlockQuads = kBlockTokens / kQuad;
constexpr int kLineBytes = 64; ///< of the processor's caches
/// Groups of rows that share each load of K and V.
constexpr int kBlockGroups = 2;

/// Lanes of the kernel's vectors: the target's lanes, or 8 if rows are not a multiple of these, so that no
/// vector reaches past the end of a row.
inline int lanesFor(const spec::Tensors &tensors, const CpuTarget &target) {
  const int lanes = target.lanes();
  return tensors.k.dim % lanes == 0 && tensors.v.dim % lanes == 0 ? lanes : 8;
}

/// The values that all functions of one kernel share.
struct KernelContext {
  // Ops are handles whose getters are not const.
  mutable dialect::AttentionOp attention;
  const CpuTarget &target;
  mutable mlir::ModuleOp module;
  Emitter &e;

  spec::Tensors tensors = attention.tensors();

  int keyDim() const { return tensors.k.dim; }   ///< also q's
  int valueDim() const { return tensors.v.dim; } ///< also the output's
  mlir::Type queryType() const { return attention.getQ().getElementType(); }
  mlir::Type keyType() const { return attention.getK().getElementType(); }
  mlir::Type valueType() const { return attention.getV().getElementType(); }
  mlir::Type outputType() const { return attention.getOut().getElementType(); }
  /// The integer types as which elements of K and V are loaded.
  mlir::Type keyBits() const { return bitsOf(keyType()); }
  mlir::Type valueBits() const { return bitsOf(valueType()); }
  bool isSigmoid() const { return attention.getNormalize() == dialect::Normalize::Sigmoid; }
  /// Whether q.k multiplies pairs of bf16, with q packed unchanged; otherwise q is packed as f32. The results
  /// of a hook `key` are f32, so they exclude pairs.
  bool dotsKeyPairs() const {
    return hasDots() && queryType().isBF16() && keyType().isBF16() && !attention.hasKey();
  }
  /// Whether V is multiplied in pairs of tokens, with bf16 weights; otherwise weights are f32.
  bool dotsValuePairs() const { return hasDots() && valueType().isBF16(); }

  /// A vector of scores is [row of the group][token of the quad]. Each row has 128 bits of it, so the sums
  /// over keyDim, the maxima and the sums of weights never cross such a boundary.
  int groupRows() const { return e.lanes() / kQuad; }
  /// Dimensions of each row in one vector of packed q.
  int stepDims() const { return dotsKeyPairs() ? 8 : 4; }
  int packedGroupBytes() const { return keyDim() / stepDims() * e.lanes() * 4; }

  /// Columns of V that are summed two vectors at a time; the others are in order.
  int pairedColumns() const {
    return valueType().isBF16() ? valueDim() / (2 * e.lanes()) * (2 * e.lanes()) : 0;
  }
  /// The place of column `c` in a pair of sum vectors. bf16 multiplied in pairs of tokens is interleaved in
  /// 128-bit pieces; other bf16 is widened two numbers at a time, into even and odd columns.
  int placeInPair(int c) const {
    if (dotsValuePairs())
      return c / 8 * 4 + c % 4 + (c % 8 < 4 ? 0 : e.lanes());
    return c / 2 + c % 2 * e.lanes();
  }

  /// Weights are [group][quad][row][token], with quads in the order of a pass's list: f32, or bf16 if V is
  /// multiplied in pairs of tokens.
  int groupWeightBytes() const { return (kBlockQuads + 2) * e.lanes() * 4; }
  int weightBytes() const { return dotsValuePairs() ? 2 : 4; }

private:
  bool hasDots() const { return target.bf16Dot && e.lanes() == 16; } // of whole vectors
  mlir::Type bitsOf(mlir::Type type) const {
    return e.builder().getIntegerType(type.getIntOrFloatBitWidth());
  }
};

/// The arguments of the passes over a block, which are all internal functions:
/// (const CpuAttendCall *call, const float *keys, const int *quads, i64 quadCount, i64 row, i64 groups,
///  void *weights, float *rescale, i64 fetch).
/// `quads` lists the quads of tokens that rows from `row` on may see, and repeats the last one.
/// `keys` is K as f32, [token][keyDim], after the hook `key`; it is used only if q.k does not multiply
/// pairs.
/// The pass also prefetches `fetch` tokens of the next block.
struct Pass {
  explicit Pass(mlir::LLVM::LLVMFuncOp function)
      : call(function.getArgument(0)), keys(function.getArgument(1)), quads(function.getArgument(2)),
        quadCount(function.getArgument(3)), row(function.getArgument(4)), groups(function.getArgument(5)),
        weights(function.getArgument(6)), rescale(function.getArgument(7)), fetch(function.getArgument(8)) {}
  mlir::Value call, keys, quads, quadCount, row, groups, weights, rescale, fetch;
};
mlir::LLVM::LLVMFuncOp passFunction(const KernelContext &context, llvm::StringRef name);

/// weights[group][i] = q . k, for `groups` groups.
mlir::LLVM::LLVMFuncOp emitScores(const KernelContext &context, int groups);
/// Turns scores into weights in place and computes each row's factor for its old state, for all groups.
mlir::LLVM::LLVMFuncOp emitWeigh(const KernelContext &context);
/// acc = acc * rescale + weights . V, for `rows` rows.
mlir::LLVM::LLVMFuncOp emitAccumulate(const KernelContext &context, int rows);
/// The lines of the next block that a pass prefetches, because hardware prefetchers stop at the ends of pages
/// and strides. A core drops requests beyond its limit of pending ones. So the requests are spread between
/// the loads of this block and cost few instructions each. A line that is not needed is replaced by one that
/// is cached, which is cheaper than a branch.
class Fetches {
public:
  /// `there`: an address that the pass uses anyway, so its line is cached.
  Fetches(const KernelContext &context, const Pass &pass, mlir::Value there);

  /// The vectors of the next block in K or in V.
  struct Cache {
    mlir::Value base, offsets;
    int rowBytes, elementBytes;

    int linesPerToken() const { return (rowBytes + kLineBytes - 1) / kLineBytes; }
    int elementsPerLine() const { return kLineBytes / elementBytes; }
  };
  const Cache &keys() const { return keys_; }
  const Cache &values() const { return values_; }

  void clear() { lines_.clear(); }
  /// Adds up to `tokens` tokens of `cache` from `token` (i64) on, if they are below `limit` (i64).
  void add(const Cache &cache, mlir::Value token, int tokens, mlir::Value limit);
  /// Adds the share of step `step` (i64) of `steps`, for `tokens` tokens from `token` on.
  void addShare(const Cache &cache, mlir::Value token, int tokens, mlir::Value step, int steps);
  /// Emits the requests of part `part` of `parts` of everything that was added.
  void ask(int part, int parts) const;

private:
  void addLines(const Cache &cache, mlir::Value token, mlir::Value element, int count, mlir::Value limit);

  const KernelContext &context_;
  Cache keys_, values_;
  mlir::Value fetch_, there_;
  llvm::SmallVector<mlir::Value> lines_; ///< addresses
};

// Each emits one function of the table, named like its member; null after a reported diagnostic.
mlir::LLVM::LLVMFuncOp emitPack(const KernelContext &context);
mlir::LLVM::LLVMFuncOp emitAttend(const KernelContext &context);
mlir::LLVM::LLVMFuncOp emitTile(const KernelContext &context);
mlir::LLVM::LLVMFuncOp emitFinish(const KernelContext &context, bool partial);
mlir::LLVM::LLVMFuncOp emitMerge(const KernelContext &context);

/// The complete module, with the table deft_cpu_<variant>.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> emitKernel(dialect::AttentionOp attention,
                                                              const CpuTarget &target);

} // namespace deft::codegen::cpu
