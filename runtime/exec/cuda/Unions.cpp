#include "runtime/exec/cuda/Unions.h"

#include <algorithm>
#include <cmath>

namespace deft::exec {

namespace {

/// Where both paths have had the same tokens so far, and do not go on so: one has a token that the other has
/// not, or has elsewhere.
int sharedEnd(std::span<const plan::PathStretch> a, std::span<const plan::PathStretch> b) {
  std::size_t i = 0, j = 0;
  int ofA = 0, ofB = 0; // tokens of the stretches that were looked at
  int end = 0;
  while (i < a.size() && j < b.size()) {
    const int position = a[i].position + ofA;
    if (position != b[j].position + ofB || a[i].location + ofA != b[j].location + ofB)
      return end;
    const int step = std::min(a[i].tokens - ofA, b[j].tokens - ofB);
    end = position + step;
    ofA += step;
    ofB += step;
    if (ofA == a[i].tokens) {
      ++i;
      ofA = 0;
    }
    if (ofB == b[j].tokens) {
      ++j;
      ofB = 0;
    }
  }
  return end;
}

/// Tokens that the union of so many lists reads of paths that share `shared` of their tokens, where each has
/// drawn its list by lot.
double expectedTokens(int queries, double listed, double tokens, double shared) {
  const double part = tokens > 0 ? listed / tokens : 0;
  return shared * (1 - std::pow(1 - part, queries)) + queries * (tokens - shared) * part;
}

/// The same of lists whose queries agree on `overlap` of what they list of the tokens that they share.
double overlappingTokens(int queries, double listed, double tokens, double shared, double overlap) {
  const double own = 1 - overlap * (tokens > 0 ? shared / tokens : 1);
  return listed * (1 + (queries - 1) * own);
}

} // namespace

UnionShape UnionShape::with(int budget, double listOverlap) const {
  if (!areGiven)
    return *this;
  UnionShape shape = *this;
  shape.overlap = listOverlap;
  shape.queries = std::min(queries, mostListed / budget);
  return shape.queries > 1 && listOverlap > 0 ? shape : UnionShape{};
}

int UnionShape::partsOf(int unions) const { return std::max(parts / std::max(unions, 1), 1); }
int UnionShape::mostItems(int mostQueries) const {
  return queries > 0 && mostQueries > 1 ? std::max(mostQueries / 2, parts) * itemsOfPart : 0;
}
int UnionShape::mostPartials(int mostQueries) const {
  return queries > 0 && mostQueries > 1 ? std::max(std::min(mostQueries, queries) * parts, mostQueries) : 0;
}

double leastSavedOfGiven(const config::CostCoefficients &cost, int blocks) {
  return cost.unionUs / cost.latentTokenUs * blocks;
}

std::vector<abi::Union> findUnions(const plan::Plan &plan, const plan::Paths &paths, const UnionShape &shape,
                                   int budget, int mostQueries) {
  std::vector<abi::Union> unions;
  const int queries = paths.queryCount();
  const auto pathOf = [&](int query) { return paths.of(plan.callerIndex[static_cast<std::size_t>(query)]); };
  const auto lengthOf = [&](int query) {
    int tokens = 0;
    for (const plan::PathStretch &stretch : pathOf(query))
      tokens += stretch.tokens;
    return tokens;
  };
  int before = 0;
  double saved = 0; // by all
  for (int first = 0; first < queries;) {
    const int most = std::min({shape.queries, queries - first, mostQueries - before});
    abi::Union best{first, 1, 0, before, 0, 0};
    double bestSaved = 0;
    int shared = 0;
    double listed = 0, tokens = 0; // of the queries so far, in all
    for (int count = 1; count <= most; ++count) {
      const int query = first + count - 1, length = lengthOf(query);
      tokens += length;
      listed += shape.areGiven ? budget : std::min(length, budget);
      if (count == 1)
        continue;
      const int end = sharedEnd(pathOf(query - 1), pathOf(query));
      shared = count == 2 ? end : std::min(shared, end);
      if (shared == 0)
        break;
      const double each = tokens / count, sharedOfEach = std::min<double>(shared, each);
      const double read = shape.areGiven ? overlappingTokens(count, budget, each, sharedOfEach, shape.overlap)
                                         : expectedTokens(count, listed / count, each, sharedOfEach);
      if (read <= shape.mostRead * listed && listed - read > bestSaved) {
        bestSaved = listed - read;
        best = {first, count, shared, before, 0, 0};
      }
    }
    if (best.queryCount > 1) {
      unions.push_back(best);
      saved += bestSaved;
      before += best.queryCount;
    }
    first += best.queryCount;
  }
  if (saved < shape.leastSaved)
    return {};
  const int parts = shape.partsOf(static_cast<int>(unions.size()));
  for (std::size_t i = 0; i < unions.size(); ++i) {
    unions[i].parts = parts;
    unions[i].itemBegin = static_cast<int>(i) * parts * shape.itemsOfPart;
  }
  return unions;
}

} // namespace deft::exec
