#pragma once

#include "runtime/exec/Inputs.h"
#include "runtime/plan/Plan.h"
#include "templates/deft/cpu_abi.h"

#include <vector>

namespace deft::exec {

/// Tokens of one call of a kernel: consecutive tokens of an item, out of as many runs as it takes. Short
/// runs, such as the nodes of a token tree, so share a call; which rows see which token is written down for
/// each.
struct TokenBlock {
  int tokens = 0;
  int rowBegin = 0, rowEnd = 0; ///< rows of the item that see any token; begins a group of rows
  bool cut = false;             ///< some row of a started group does not see some token
  int kvPosLow = 0, kvPosHigh = 0, depthLow = 0, depthHigh = 0; ///< inclusive
  // One entry a token, and padding as templates/deft/cpu_abi.h asks for.
  std::vector<long long> keyOffsets, valueOffsets;
  std::vector<long long> slots;                   ///< where the kernel reads them
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

  /// Tokens of a full block of the item. Where few rows share what is read, the time is that of reading, and
  /// that is shorter where a head's vectors of few tokens are read between those of its neighbours (measured:
  /// of 8, 16, 32 and 64 tokens, 16 are best); many rows have fewer rescalings to do in long blocks. The
  /// length decides how a row's sums are rounded, so in an invariant plan it must not depend on who else is
  /// in the item.
  static int mostTokens(const plan::Plan &plan, const abi::Item &item, int ratio,
                        const abi::CpuKernel &kernel);

  /// Room for a block of any item.
  static void reserve(TokenBlock &block, const abi::CpuKernel &kernel);

  /// Kernels fetch beyond the last token of a block, of which there is one: it stands there again, seen by no
  /// row.
  static void pad(TokenBlock &block, const abi::CpuKernel &kernel);

  /// False behind the last token. Allocates nothing with a block that has room.
  bool next(TokenBlock &block);

private:
  void append(TokenBlock &block, const abi::Run &run, int begin, int tokens) const;
  /// Makes its rows relative to its first group, and pads it.
  void close(TokenBlock &block) const;

  const plan::Plan &plan_;
  const InputView &inputs_;
  int ratio_;
  const abi::CpuKernel &kernel_;
  int most_, run_, rows_, runEnd_;
  int begin_ = 0; ///< tokens of the run that earlier blocks have
};

} // namespace deft::exec
