#pragma once

#include "runtime/exec/Inputs.h"
#include "runtime/plan/Plan.h"
#include "templates/deft/cpu_abi.h"

#include <vector>

namespace deft::exec {

/// The tokens of one kernel call: consecutive tokens of an item, from as many runs as needed. So
/// short runs, such as the nodes of a token tree, share a call. The block records which rows see each
/// token.
struct TokenBlock {
  int tokens = 0;
  int rowBegin = 0, rowEnd = 0; ///< rows of the item that see any token; rowBegin starts a group of rows
  bool cut = false;             ///< some row of an included group does not see some token
  int kvPosLow = 0, kvPosHigh = 0, depthLow = 0, depthHigh = 0; ///< inclusive
  // One entry for each token, and padding as templates/deft/cpu_abi.h requires.
  std::vector<long long> keyOffsets, valueOffsets;
  std::vector<long long> slots;                   ///< filled if the kernel reads them
  std::vector<int> kvPos, depth, rowLow, rowHigh; ///< rows relative to rowBegin
};

/// Walks the tokens of an item block by block.
class TokenBlocks {
public:
  TokenBlocks(const plan::Plan &plan, const abi::Item &item, const InputView &inputs, int ratio,
              const abi::CpuKernel &kernel)
      : plan_(plan), inputs_(inputs), ratio_(ratio), kernel_(kernel),
        most_(mostTokens(plan, item, ratio, kernel)), run_(item.runBegin), rows_(item.queryCount * ratio),
        runEnd_(item.runBegin + item.runCount) {}

  /// The tokens of a full block of the item. If few rows share the tokens, reading dominates, and it is
  /// faster if short pieces of neighbouring heads' vectors alternate: of 8, 16, 32 and 64 tokens 16 was
  /// measured as best. With many rows, long blocks need fewer rescalings. The length decides how the
  /// sums of a row are rounded, so in an invariant plan it must not depend on other queries of the
  /// item.
  static int mostTokens(const plan::Plan &plan, const abi::Item &item, int ratio,
                        const abi::CpuKernel &kernel);

  /// Makes room for a block of any item.
  static void reserve(TokenBlock &block, const abi::CpuKernel &kernel);

  /// Kernels prefetch past the last token of a block. This repeats the last token there; no row sees the
  /// copies.
  static void pad(TokenBlock &block, const abi::CpuKernel &kernel);

  /// False after the last token. Allocates nothing if the block has room.
  bool next(TokenBlock &block);

private:
  void append(TokenBlock &block, const abi::Run &run, int begin, int tokens) const;
  /// Makes the block's rows relative to its first group, and pads it.
  void close(TokenBlock &block) const;

  const plan::Plan &plan_;
  const InputView &inputs_;
  int ratio_;
  const abi::CpuKernel &kernel_;
  int most_, run_, rows_, runEnd_;
  int begin_ = 0; ///< tokens of the run that earlier blocks contained
};

} // namespace deft::exec
