#pragma once

#include "compiler/codegen/cpu/Emitter.h"

namespace deft::codegen::cpu {

/// Tokens of one `attend`: K and V of a block stay in the first two levels of cache between the passes over
/// them.
constexpr int kBlockTokens = 64;
/// Tokens whose scores share a vector with those of a group of rows.
constexpr int kQuad = abi::kCpuTokenPad;
constexpr int kBlockQuads = kBlockTokens / kQuad;
constexpr int kLineBytes = 64; ///< of the processor's caches
/// Groups of rows that share what is loaded of K and V.
constexpr int kBlockGroups = 2;

/// Lanes of its vectors: as many as the target has, or 8 where rows are no multiple of these, so that no
/// vector reaches over the end of a row.
inline int lanesFor(const spec::Tensors &tensors, const CpuTarget &target) {
  const int lanes = target.lanes();
  return tensors.k.dim % lanes == 0 && tensors.v.dim % lanes == 0 ? lanes : 8;
}

/// What the functions of one kernel have in common.
struct KernelContext {
  // Ops are handles whose getters are not const.
  mutable dialect::AttentionOp attention;
  const CpuTarget &target;
  mutable mlir::ModuleOp module;
  Emitter &e;

  spec::Tensors tensors = attention.tensors();

  int keyDim() const { return tensors.k.dim; }   ///< and q's
  int valueDim() const { return tensors.v.dim; } ///< and the output's
  mlir::Type queryType() const { return attention.getQ().getElementType(); }
  mlir::Type keyType() const { return attention.getK().getElementType(); }
  mlir::Type valueType() const { return attention.getV().getElementType(); }
  mlir::Type outputType() const { return attention.getOut().getElementType(); }
  /// As what elements of K and of V are loaded.
  mlir::Type keyBits() const { return bitsOf(keyType()); }
  mlir::Type valueBits() const { return bitsOf(valueType()); }
  bool isSigmoid() const { return attention.getNormalize() == dialect::Normalize::Sigmoid; }
  /// Whether q.k is taken from pairs of bf16, with q packed as it is; else q is packed as f32. What a hook
  /// makes of K is not in the cache.
  bool dotsKeyPairs() const {
    return hasDots() && queryType().isBF16() && keyType().isBF16() && !attention.hasKey();
  }
  /// Whether V is multiplied in pairs of tokens, with weights of bf16; else weights are f32.
  bool dotsValuePairs() const { return hasDots() && valueType().isBF16(); }

  /// A vector of scores is [row of the group][token of the quad]: each row has 128 bits of it, so that the
  /// sums over keyDim, the maxima and the sums of weights never cross them.
  int groupRows() const { return e.lanes() / kQuad; }
  /// Dimensions that one vector of packed q holds of each row.
  int stepDims() const { return dotsKeyPairs() ? 8 : 4; }
  int packedGroupBytes() const { return keyDim() / stepDims() * e.lanes() * 4; }

  /// Columns of V that are summed two vectors at a time; the rest is in order.
  int pairedColumns() const {
    return valueType().isBF16() ? valueDim() / (2 * e.lanes()) * (2 * e.lanes()) : 0;
  }
  /// Where column `c` of a pair of vectors of sums stands: bf16 multiplied in pairs of tokens is interleaved
  /// in 128-bit pieces; else bf16 is widened by masking two numbers at once, into even and odd columns.
  int placeInPair(int c) const {
    if (dotsValuePairs())
      return c / 8 * 4 + c % 4 + (c % 8 < 4 ? 0 : e.lanes());
    return c / 2 + c % 2 * e.lanes();
  }

  /// Weights are [group][quad][row][token], the quads as the list of a pass names them: f32, or bf16 where V
  /// is multiplied in pairs of tokens.
  int groupWeightBytes() const { return (kBlockQuads + 2) * e.lanes() * 4; }
  int weightBytes() const { return dotsValuePairs() ? 2 : 4; }

private:
  bool hasDots() const { return target.bf16Dot && e.lanes() == 16; } // of whole vectors
  mlir::Type bitsOf(mlir::Type type) const {
    return e.builder().getIntegerType(type.getIntOrFloatBitWidth());
  }
};

/// What the passes over a block are called with, all internal functions:
/// (const CpuAttendCall *call, const float *keys, const int *quads, i64 quadCount, i64 row, i64 groups,
///  void *weights, float *rescale, i64 fetch). `quads` lists the quads of tokens that rows from `row` on may
///  see,
/// with one more entry that repeats the last; `keys` is K as f32, [token][keyDim], as the hook
/// `key` makes it, where q.k is not taken from pairs; `fetch` tokens of the next block are to be asked for on
/// the way.
struct Pass {
  explicit Pass(mlir::LLVM::LLVMFuncOp function)
      : call(function.getArgument(0)), keys(function.getArgument(1)), quads(function.getArgument(2)),
        quadCount(function.getArgument(3)), row(function.getArgument(4)), groups(function.getArgument(5)),
        weights(function.getArgument(6)), rescale(function.getArgument(7)), fetch(function.getArgument(8)) {}
  mlir::Value call, keys, quads, quadCount, row, groups, weights, rescale, fetch;
};
mlir::LLVM::LLVMFuncOp passFunction(const KernelContext &context, llvm::StringRef name);

/// weights[group][i] = q . k of `groups` groups.
mlir::LLVM::LLVMFuncOp emitScores(const KernelContext &context, int groups);
/// Scores to weights, in place, and the factor of each row's earlier state, of all groups of a block.
mlir::LLVM::LLVMFuncOp emitWeigh(const KernelContext &context);
/// acc = acc * rescale + weights . V of `rows` rows.
mlir::LLVM::LLVMFuncOp emitAccumulate(const KernelContext &context, int rows);
/// Lines of the next block that a pass asks for, since hardware prefetchers stop at the ends of pages and
/// strides. A core drops requests beyond what it keeps under way: they go line by line, between the loads of
/// this block, and cost few instructions each. What is not to be asked for becomes a line that is there:
/// cheaper than a branch.
class Fetches {
public:
  /// `there`: an address that the pass uses.
  Fetches(const KernelContext &context, const Pass &pass, mlir::Value there);

  /// What the next block has of K or of V.
  struct Cache {
    mlir::Value base, offsets;
    int rowBytes, elementBytes;

    int linesPerToken() const { return (rowBytes + kLineBytes - 1) / kLineBytes; }
    int elementsPerLine() const { return kLineBytes / elementBytes; }
  };
  const Cache &keys() const { return keys_; }
  const Cache &values() const { return values_; }

  void clear() { lines_.clear(); }
  /// So many tokens of `cache` from `token` (i64) on, of those below `limit` (i64).
  void add(const Cache &cache, mlir::Value token, int tokens, mlir::Value limit);
  /// What step `step` (i64) of `steps` has to ask for, of so many tokens from `token` on.
  void addShare(const Cache &cache, mlir::Value token, int tokens, mlir::Value step, int steps);
  /// Asks for what part `part` of `parts` has of all that was added.
  void ask(int part, int parts) const;

private:
  void addLines(const Cache &cache, mlir::Value token, mlir::Value element, int count, mlir::Value limit);

  const KernelContext &context_;
  Cache keys_, values_;
  mlir::Value fetch_, there_;
  llvm::SmallVector<mlir::Value> lines_; ///< addresses
};

// Each emits one function of the table, named as its member, or null after a reported diagnostic.
mlir::LLVM::LLVMFuncOp emitPack(const KernelContext &context);
mlir::LLVM::LLVMFuncOp emitAttend(const KernelContext &context);
mlir::LLVM::LLVMFuncOp emitTile(const KernelContext &context);
mlir::LLVM::LLVMFuncOp emitFinish(const KernelContext &context, bool partial);
mlir::LLVM::LLVMFuncOp emitMerge(const KernelContext &context);

/// All of it: the module with the table deft_cpu_<variant>.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> emitKernel(dialect::AttentionOp attention,
                                                              const CpuTarget &target);

} // namespace deft::codegen::cpu
