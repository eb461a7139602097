#pragma once

#include "compiler/kernels/SparsePhase.h"
#include "compiler/spec/Names.h"

#include <string>

namespace deft::cli {

/// "4096 or 1024 tokens by kv_head, including the first 4 and the last 64 of the path"
inline std::string selectText(const spec::SelectSpec &select) {
  std::string text;
  for (const int budget : select.budget.values)
    text += (text.empty() ? "" : " or ") + std::to_string(budget);
  text += std::string(" tokens by ") + spec::toString(select.by);
  if (select.keepFirst == 0 && select.keepLast == 0)
    return text;
  return text + ", including the first " + std::to_string(select.keepFirst) + " and the last " +
         std::to_string(select.keepLast) + " of the path";
}

using kernels::sparseTileText;

} // namespace deft::cli
