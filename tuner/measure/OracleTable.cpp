#include "tuner/measure/OracleTable.h"

#include "compiler/support/Numbers.h"
#include "runtime/exec/Half.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

namespace deft::measure {

using support::Error;
using support::ErrorCode;
using support::Result;

OracleTable::OracleTable(const spec::Variant &variant, const tree::KvTree &tree, const exec::Inputs &inputs,
                         long long mostPairs, int threads)
    : variant_(variant) {
  const int queries = static_cast<int>(tree.queries().size());
  const long long all = static_cast<long long>(queries) * variant.kvHeads;
  long long pairs = 0;
  for (const tree::Query &query : tree.queries())
    pairs += static_cast<long long>(tree.pathTokens(query)) * variant.queryHeads;
  const double share =
      pairs > 0 ? std::min(1.0, static_cast<double>(mostPairs) / static_cast<double>(pairs)) : 1;
  const long long wanted =
      std::clamp(static_cast<long long>(share * static_cast<double>(all)), std::min(all, 4LL), all);
  for (long long i = 0; i < wanted; ++i) {
    // Spread evenly over queries; the step has no common factor with the heads, so each head has its turn.
    const long long query = wanted > 1 ? i * (queries - 1) / (wanted - 1) : 0;
    groups_.push_back({static_cast<int>(query), static_cast<int>(i % variant.kvHeads), {}});
  }

  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < groups_.size(); i = next++) {
      Group &group = groups_[i];
      group.rows = reference::boundGroup(variant_, tree, inputs, group.query, group.kvHead);
    }
  };
  std::vector<std::thread> helpers;
  for (int i = 1; i < threads; ++i)
    helpers.emplace_back(work);
  work();
  for (std::thread &helper : helpers)
    helper.join();
}

Result<void> OracleTable::scan(const exec::Outputs &outputs) const {
  const auto wrong = [&](std::size_t row, const char *what) {
    return Error{ErrorCode::Diagnostics,
                 "query " + std::to_string(row / static_cast<std::size_t>(variant_.queryHeads)) + ", head " +
                     std::to_string(row % static_cast<std::size_t>(variant_.queryHeads)) + ": " + what,
                 ""};
  };
  for (std::size_t i = 0; i < outputs.out.size(); ++i)
    if (std::isnan(exec::toFloat(outputs.out[i], variant_.tensors.out.dtype)))
      return wrong(i / static_cast<std::size_t>(variant_.tensors.out.dim), "the output is no number");
  for (std::size_t i = 0; i < outputs.lse.size(); ++i)
    if (std::isnan(outputs.lse[i]))
      return wrong(i, "the lse is no number");
  return {};
}

Result<void> OracleTable::compare(const exec::Outputs &outputs) const {
  if (auto scanned = scan(outputs); !scanned)
    return scanned;
  const auto dim = static_cast<std::size_t>(variant_.tensors.out.dim);
  for (const Group &group : groups_)
    for (std::size_t i = 0; i < group.rows.size(); ++i) {
      const std::size_t head = static_cast<std::size_t>(group.kvHead * variant_.ratio()) + i;
      const std::size_t row =
          static_cast<std::size_t>(group.query) * static_cast<std::size_t>(variant_.queryHeads) + head;
      std::vector<double> actual(dim);
      for (std::size_t d = 0; d < dim; ++d)
        actual[d] = exec::toFloat(outputs.out[row * dim + d], variant_.tensors.out.dtype);
      const std::string where =
          "query " + std::to_string(group.query) + ", head " + std::to_string(head) + ": ";
      if (const double error = reference::relativeError(group.rows[i].exact.out, actual);
          !(error <= group.rows[i].allowed))
        return Error{ErrorCode::Diagnostics,
                     where + "error " + support::significant(error, 2) + ", allowed " +
                         support::significant(group.rows[i].allowed, 2),
                     ""};
      if (outputs.lse.empty())
        continue;
      if (const double error = reference::lseDistance(group.rows[i].exact.lse, outputs.lse[row]);
          !(error <= reference::kLseTolerance))
        return Error{ErrorCode::Diagnostics,
                     where + "lse off by " + support::significant(error, 2) + ", allowed " +
                         support::significant(reference::kLseTolerance, 2),
                     ""};
    }
  return {};
}

} // namespace deft::measure
