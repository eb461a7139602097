#include "runtime/exec/FiniteCheck.h"

#include "runtime/exec/ScaledRow.h"

#include <cmath>
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>

namespace deft::exec {

namespace {

/// In the order of cause and effect: a fault in an earlier place may cause those in later ones.
enum class Place { Q, Key, Value, Lse, Out };

/// A value of a row that is not finite.
struct Find {
  int query = 0, head = 0;
  Place place = Place::Out;
  int element = 0;
  float value = 0;
  int position = 0, location = 0; ///< of the token with this key or value

  bool isBefore(const Find &other) const {
    return std::tuple(query, head, place, position) <
           std::tuple(other.query, other.head, other.place, other.position);
  }
};

/// The first of some consecutive elements that is not finite.
struct Element {
  int index;
  float value;
};
std::optional<Element> firstNotFinite(const void *memory, long long first, const spec::TensorType &tensor) {
  for (int i = 0; i < tensor.dim; ++i)
    if (const float value = toFloat(bitsAt(memory, first + i, tensor.dtype), tensor.dtype);
        !std::isfinite(value))
      return Element{i, value};
  return {};
}

/// In a token's row of K.
std::optional<Element> firstNotFiniteKey(const void *memory, long long first, const spec::Tensors &tensors) {
  for (int i = 0; i < tensors.k.dim; ++i)
    if (const float value = keyElement(tensors, memory, first, i); !std::isfinite(value))
      return Element{i, value};
  return {};
}

class Search {
public:
  Search(const spec::Variant &variant, const plan::Plan &plan, const plan::Reach &reach,
         const InputView &inputs, const ResultView &results)
      : variant_(variant), plan_(plan), reach_(reach), inputs_(inputs), results_(results) {}

  std::optional<Find> first() {
    lookAtRows();
    for (const abi::Item &item : plan_.items)
      for (int r = item.runBegin; r < item.runBegin + item.runCount; ++r)
        lookAtTokens(item, plan_.runs[static_cast<std::size_t>(r)]);
    return first_;
  }

private:
  void note(const Find &find) {
    if (!first_ || find.isBefore(*first_))
      first_ = find;
  }

  /// Searches rows up to the end of the first one with a fault.
  void lookAtRows() {
    const auto &tensors = variant_.tensors;
    const long long qStride = rowStrideOf(inputs_.qStride, variant_, tensors.q),
                    outStride = rowStrideOf(results_.outStride, variant_, tensors.out);
    for (int query = 0; query < plan_.queryCount(); ++query)
      for (int head = 0; head < variant_.queryHeads && !first_; ++head) {
        const auto noteRow = [&](Place place, const void *memory, long long row,
                                 const spec::TensorType &tensor) {
          if (const auto found = firstNotFinite(memory, row + std::int64_t{head} * tensor.dim, tensor))
            note({query, head, place, found->index, found->value, 0, 0});
        };
        noteRow(Place::Q, inputs_.q, query * qStride, tensors.q);
        noteRow(Place::Out, results_.out, query * outStride, tensors.out);
        if (const float lse =
                results_.lse ? results_.lse[std::int64_t{query} * variant_.queryHeads + head] : 0;
            !std::isfinite(lse) && !(lse < 0)) // -inf: a row that sees nothing
          note({query, head, Place::Lse, 0, lse, 0, 0});
      }
  }

  void lookAtTokens(const abi::Item &item, const abi::Run &run) {
    for (int t = 0; t < run.tokens; ++t) {
      const int location = run.location + t;
      if (inputs_.pageSize > 0 && inputs_.pageTable[location / inputs_.pageSize] < 0)
        continue; // a page that the mask hides from all queries
      for (int kvHead = 0; kvHead < variant_.kvHeads; ++kvHead) {
        const spec::Tensors &tensors = variant_.tensors;
        const auto key = firstNotFiniteKey(inputs_.k, inputs_.keyAt(location, kvHead), tensors);
        // V in K's memory has been checked already.
        const auto value = tensors.valueInKey
                               ? std::nullopt
                               : firstNotFinite(inputs_.v, inputs_.valueAt(location, kvHead), tensors.v);
        if (!key && !value)
          continue;
        const Element &found = key ? *key : *value;
        noteReaders(item, run, t,
                    {0, kvHead * variant_.ratio(), key ? Place::Key : Place::Value, found.index, found.value,
                     run.position + t, location});
      }
    }
  }

  /// Notes the fault for the first query that sees token `t` of the run.
  void noteReaders(const abi::Item &item, const abi::Run &run, int t, Find find) {
    for (int q = run.queryBegin + run.slope * t; q < run.queryEnd; ++q) {
      const auto query = static_cast<std::size_t>(item.queryBegin + q);
      if (reach_.firstFrom(plan_.queryPos[query], find.position) != find.position)
        continue;
      find.query = plan_.callerIndex[query];
      note(find);
    }
  }

  const spec::Variant &variant_;
  const plan::Plan &plan_;
  const plan::Reach &reach_;
  const InputView &inputs_;
  const ResultView &results_;
  std::optional<Find> first_;
};

std::string textOf(float value) { return std::isnan(value) ? "NaN" : value < 0 ? "-inf" : "inf"; }

support::Error errorOf(const Find &find) {
  const std::string row =
                        "query " + std::to_string(find.query) + ", head " + std::to_string(find.head) + ": ",
                    element = " at element " + std::to_string(find.element), value = textOf(find.value);
  const auto token = [&] {
    return " of the token at kv_pos " + std::to_string(find.position) + " of its path, location " +
           std::to_string(find.location);
  };
  const std::string hint = "a NaN or an infinity in q or K need not show in the result: such a row may look "
                           "like one that sees nothing";
  switch (find.place) {
  case Place::Q:
    return {support::ErrorCode::Usage, row + "q is " + value + element, hint};
  case Place::Key:
    return {support::ErrorCode::Usage, row + "K is " + value + element + token(), hint};
  case Place::Value:
    return {support::ErrorCode::Usage, row + "V is " + value + element + token(), ""};
  case Place::Lse:
    return {support::ErrorCode::Usage, row + "lse is " + value + ", and q, K and V are finite",
            "look at the spec's score, and at its parameters"};
  case Place::Out:
    break;
  }
  return {support::ErrorCode::Usage, row + "out is " + value + element + ", and q, K and V are finite",
          "look at the spec's score and output, and whether the values fit the output's type"};
}

} // namespace

std::optional<support::Error> findNotFinite(const spec::Variant &variant, const plan::Plan &plan,
                                            const plan::Reach &reach, const InputView &inputs,
                                            const ResultView &results) {
  const auto find = Search(variant, plan, reach, inputs, results).first();
  if (!find)
    return {};
  return errorOf(*find);
}

} // namespace deft::exec
