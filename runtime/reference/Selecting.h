#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/exec/Inputs.h"
#include "runtime/exec/Selection.h"
#include "runtime/tree/KvTree.h"

#include <string>
#include <vector>

/// Which tokens a selection has, by the definition (LANGUAGE.md, rules K): float64 scores and a sort. And
/// whether lists that somebody else made are such.
namespace deft::reference {

/// What the tokens of a query's path are worth to one of its lists, by position; -inf: hidden from all heads.
struct Worth {
  std::vector<double> values;
  std::vector<double> bounds; ///< how far f32 arithmetic may move them
};
Worth worthOf(const spec::Variant &variant, const tree::KvTree &tree, const exec::Inputs &inputs, int query,
              int list);

/// The positions of a list, rising.
std::vector<int> selectBySort(const std::vector<double> &worth, const spec::SelectSpec &select, int budget);

/// All lists of all queries.
exec::Selection select(const spec::Variant &variant, const tree::KvTree &tree, const exec::Inputs &inputs,
                       int budget);

struct SelectionReport {
  long long lists = 0; ///< judged
  long long wrongLists = 0;
  long long tokens = 0, common = 0; ///< in the judged lists; of them: in the lists of the definition, too
  std::string fault;                ///< of the first wrong list: "query 3, list 1: ..."; empty: none

  /// The part of the tokens that are those of the definition: below 1 where roundings decide between tokens
  /// that are worth about the same.
  double recall() const {
    return tokens == 0 ? 1 : static_cast<double>(common) / static_cast<double>(tokens);
  }
  bool passed() const { return wrongLists == 0; }
};

/// A list is right when it has as many tokens as it should, by rising positions, the kept ones among them,
/// none that is hidden, and, of the others, none that is worth less than one left out, by more than roundings
/// of f32 account for.
SelectionReport checkSelection(const spec::Variant &variant, const tree::KvTree &tree,
                               const exec::Inputs &inputs, const exec::Selection &selection,
                               const std::vector<int> &queries, int threads = 1);

} // namespace deft::reference
