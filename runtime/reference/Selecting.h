#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/exec/Inputs.h"
#include "runtime/exec/Selection.h"
#include "runtime/tree/KvTree.h"

#include <string>
#include <vector>

/// The tokens of a selection by definition (LANGUAGE.md, rules K): float64 scores and a sort. And a check of
/// lists from another source.
namespace deft::reference {

/// The worth of the tokens of a query's path to one of its lists, by position; -inf: hidden from all heads.
struct Worth {
  std::vector<double> values;
  std::vector<double> bounds; ///< the possible error of each in f32 arithmetic
};
Worth worthOf(const spec::Variant &variant, const tree::KvTree &tree, const exec::Inputs &inputs, int query,
              int list);

/// The positions of a list, ascending.
std::vector<int> selectBySort(const std::vector<double> &worth, const spec::SelectSpec &select, int budget);

/// All lists of all queries.
exec::Selection select(const spec::Variant &variant, const tree::KvTree &tree, const exec::Inputs &inputs,
                       int budget);

struct SelectionReport {
  long long lists = 0; ///< lists that were checked
  long long wrongLists = 0;
  long long tokens = 0, common = 0; ///< in the checked lists; of them: selected by the definition as well
  std::string fault;                ///< of the first wrong list: "query 3, list 1: ..."; empty: no fault

  /// The share of tokens that the definition also selects: below 1 if roundings decide between tokens of
  /// about the same worth.
  double recall() const {
    return tokens == 0 ? 1 : static_cast<double>(common) / static_cast<double>(tokens);
  }
  bool passed() const { return wrongLists == 0; }
};

/// A list is right if it has the right number of tokens at ascending positions, contains all kept ones and no
/// hidden one, and if none of its other tokens is worth less than a token that was left out, beyond the
/// roundings of f32.
SelectionReport checkSelection(const spec::Variant &variant, const tree::KvTree &tree,
                               const exec::Inputs &inputs, const exec::Selection &selection,
                               const std::vector<int> &queries, int threads = 1);

} // namespace deft::reference
