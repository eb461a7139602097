#include "runtime/exec/SizedParams.h"

#include "runtime/exec/SplitMix.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

namespace deft::exec {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

constexpr std::uint64_t kDocuments = 4, kDocumentTokens = 48;

/// The given values of a parameter of one scalar type, or random ones.
template <class T> class Elements {
public:
  Elements(std::vector<T> given, std::uint64_t base) : given_(std::move(given)), base_(base) {}

  /// The value at this index, over all tokens or queries.
  T at(std::size_t index) const {
    if (!given_.empty())
      return given_.size() == 1 ? given_.front() : given_[index];
    if constexpr (std::is_same_v<T, float>)
      return normal(scramble(base_ ^ index));
    else
      return static_cast<T>(scramble(base_ ^ index) % kDocuments);
  }
  /// One of the `each` elements of a token. If none are given, consecutive tokens mostly belong to one
  /// document.
  T ofToken(std::size_t token, std::size_t each, std::size_t one) const {
    const bool isDocument = given_.empty() && !std::is_same_v<T, float>;
    return at((isDocument ? token / kDocumentTokens : token) * each + one);
  }

  static T ofNoToken() {
    using Limits = std::numeric_limits<T>;
    return Limits::has_quiet_NaN ? Limits::quiet_NaN() : Limits::max();
  }

private:
  std::vector<T> given_;
  std::uint64_t base_;
};

template <class T>
std::vector<T> ofSlots(const Elements<T> &elements, std::size_t each, const tree::KvTree &tree,
                       const tree::CachePlacement &placement) {
  std::vector<T> slots(static_cast<std::size_t>(placement.poolTokens()) * each, Elements<T>::ofNoToken());
  std::size_t token = 0;
  for (const tree::Node &node : tree.nodes())
    for (int t = 0; t < node.tokens; ++t, ++token) {
      const auto slot = static_cast<std::size_t>(
          cacheSlotOf(placement.pageTable.data(), placement.pageSize, node.location + t));
      for (std::size_t one = 0; one < each; ++one)
        slots[slot * each + one] = elements.ofToken(token, each, one);
    }
  return slots;
}

template <class T> std::vector<T> ofQueries(const Elements<T> &elements, std::size_t queries) {
  std::vector<T> values(queries);
  for (std::size_t query = 0; query < queries; ++query)
    values[query] = elements.at(query);
  return values;
}

} // namespace

Result<void> checkSizedParams(const spec::Variant &variant, const tree::KvTree &tree,
                              const std::vector<ParamValue> &params) {
  for (std::size_t i = 0; i < params.size(); ++i) {
    const spec::Param &param = variant.params[i];
    if (!param.isSizedByRun())
      continue;
    const bool isOfTokens = param.isOfTokens();
    const auto all = isOfTokens ? static_cast<std::size_t>(tree.tokens()) : tree.queries().size();
    const int each = variant.elementsOf(param);
    const std::size_t given = countOf(params[i]);
    if (given > 1 && given != all * static_cast<std::size_t>(each))
      return Error{ErrorCode::Usage,
                   "parameter `" + param.name + "` has " + std::to_string(given) + " values, the tree has " +
                       std::to_string(all) + (isOfTokens ? " tokens" : " queries") +
                       (each > 1 ? " of " + std::to_string(each) + " KV heads" : ""),
                   !isOfTokens ? ""
                   : each > 1  ? "give one for each KV head of each token, node after node, or one for all"
                               : "give one for each token, node after node, or one for all"};
  }
  return {};
}

std::vector<ParamValue> placeSizedParams(const spec::Variant &variant, const tree::KvTree &tree,
                                         const tree::CachePlacement &placement,
                                         std::vector<ParamValue> params, std::uint64_t seed) {
  assert(checkSizedParams(variant, tree, params));
  for (std::size_t i = 0; i < params.size(); ++i) {
    const spec::Param &param = variant.params[i];
    if (!param.isSizedByRun())
      continue;
    const auto place = [&]<class T>(std::vector<T> &values) {
      const Elements<T> elements(std::move(values), scramble(scramble(seed) + 16 + i));
      values = param.isOfTokens()
                   ? ofSlots(elements, static_cast<std::size_t>(variant.elementsOf(param)), tree, placement)
                   : ofQueries(elements, tree.queries().size());
    };
    if (param.type == spec::ScalarType::F32)
      place(params[i].f32);
    else
      place(params[i].i32);
  }
  return params;
}

} // namespace deft::exec
