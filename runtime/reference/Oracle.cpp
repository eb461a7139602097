#include "runtime/reference/Oracle.h"

#include "runtime/exec/Half.h"
#include "runtime/reference/Elements.h"
#include "runtime/reference/Noise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace deft::reference {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Of f32 arithmetic, relative: a sum over a head's dims, in any order, and what follows up to a score.
constexpr double kSumRounding = 0x1p-18, kScoreRounding = 0x1p-18;

/// A token on a query's path.
struct Token {
  int location, position, depth;
};

std::vector<Token> tokensOnPath(const tree::KvTree &tree, int query) {
  const tree::Query &q = tree.queries()[query];
  std::vector<Token> tokens(tree.pathTokens(q));
  int visible = tree.seenTokens(q); // of the query's own node; all of an ancestor
  for (int index = q.node; index >= 0;) {
    const tree::Node &node = tree.nodes()[index];
    for (int t = 0; t < visible; ++t)
      tokens[node.position + t] = {node.location + t, node.position + t, node.depth};
    index = node.parent;
    visible = index >= 0 ? tree.nodes()[index].tokens : 0;
  }
  return tokens;
}

/// K or V: what is in it, and where.
struct Cache {
  const void *memory;
  const abi::CacheLayout &layout;
  const spec::TensorType &tensor;
};

/// The vectors of all tokens for one KV head, as floats: [token][dim]; 0 where there are none.
std::vector<float> gather(const Cache &cache, const std::vector<Token> &tokens, const spec::Variant &variant,
                          const exec::Inputs &inputs, int kvHead) {
  const std::size_t dim = cache.tensor.dim;
  std::vector<float> vectors(tokens.size() * dim);
  const int pageSize = variant.cache.paged ? variant.cache.pageSize : 0;
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    if (!inputs.hasPage(tokens[t].location, pageSize))
      continue;
    const long long first =
        exec::elementOf(cache.layout, inputs.pageTable.data(), pageSize, tokens[t].location, kvHead);
    for (std::size_t d = 0; d < dim; ++d)
      vectors[t * dim + d] =
          exec::toFloat(exec::bitsAt(cache.memory, first + static_cast<long long>(d), cache.tensor.dtype),
                        cache.tensor.dtype);
  }
  return vectors;
}

double dot(const std::vector<double> &q, const float *k) {
  double sum = 0;
  for (std::size_t d = 0; d < q.size(); ++d)
    sum += q[d] * k[d];
  return sum;
}

/// Where the row of one head stands, but for the token.
Site siteOf(const spec::Variant &variant, const std::vector<Token> &tokens, int query, int head) {
  Site site;
  site.qPos = static_cast<int>(tokens.size()) - 1;
  site.head = head;
  site.kvHead = head / variant.ratio();
  site.query = query;
  return site;
}

/// Final scores of one row, of the product of q with each token's key; -inf where a token is hidden.
template <class Product>
std::vector<double> scoresOf(const spec::Variant &variant, const std::vector<Token> &tokens,
                             const Product &product, Evaluator &evaluate, Site site) {
  std::vector<double> scores(tokens.size());
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    site.kvPos = tokens[t].position;
    site.depth = tokens[t].depth;
    site.location = tokens[t].location;
    site.s = evaluate.round(evaluate.round(product(t)) * variant.scale);
    const bool isVisible = !variant.mask || evaluate.boolean(*variant.mask, site);
    scores[t] = !isVisible ? -kInfinity : variant.score ? evaluate.f32(*variant.score, site) : site.s;
    if (variant.normalize == spec::Normalize::Sigmoid && variant.sigmoidBias && scores[t] != -kInfinity)
      scores[t] = evaluate.round(scores[t] + evaluate.f32(*variant.sigmoidBias, site));
  }
  return scores;
}

/// Scores become weights; returns the lse. Only the sum sees the sink.
double softmax(std::vector<double> &scores, double sink, const Evaluator &evaluate) {
  double top = sink;
  for (double score : scores)
    top = std::max(top, score);
  if (top == -kInfinity) {
    std::fill(scores.begin(), scores.end(), 0.0);
    return -kInfinity;
  }
  double sum = std::exp(sink - top);
  for (double &score : scores)
    sum += score = std::exp(score - top);
  for (double &weight : scores)
    weight = evaluate.round(weight / sum);
  return top + std::log(sum);
}

void sigmoid(std::vector<double> &scores, const Evaluator &evaluate) {
  for (double &score : scores)
    score = evaluate.round(1 / (1 + std::exp(-score)));
}

/// Scores become weights; returns the lse, which is 0 for sigmoid.
double normalize(const spec::Variant &variant, std::vector<double> &scores, Evaluator &evaluate,
                 const Site &site) {
  if (variant.normalize == spec::Normalize::Softmax)
    return softmax(scores, variant.sink ? evaluate.f32(*variant.sink, site) : -kInfinity, evaluate);
  sigmoid(scores, evaluate);
  return 0;
}

void hideUnlisted(std::vector<double> &scores, std::span<const std::int32_t> list) {
  std::vector<bool> isListed(scores.size(), false);
  for (const std::int32_t position : list)
    if (position >= 0 && static_cast<std::size_t>(position) < scores.size()) // what else there is, is a fault
      isListed[static_cast<std::size_t>(position)] = true;
  for (std::size_t t = 0; t < scores.size(); ++t)
    if (!isListed[t])
      scores[t] = -kInfinity;
}

std::vector<double> queryOf(const spec::Variant &variant, const exec::Inputs &inputs, int query, int head) {
  std::vector<double> q(variant.tensors.q.dim);
  const std::uint16_t *from = inputs.q.data() + inputs.queryAt(variant, query, head);
  for (std::size_t d = 0; d < q.size(); ++d)
    q[d] = exec::toFloat(from[d], variant.tensors.q.dtype);
  return q;
}

/// |v| of each token.
std::vector<double> normsOf(const std::vector<float> &values, int dim) {
  std::vector<double> norms(values.size() / dim);
  for (std::size_t t = 0; t < norms.size(); ++t) {
    double sum = 0;
    for (int d = 0; d < dim; ++d)
      sum += static_cast<double>(values[t * dim + d]) * values[t * dim + d];
    norms[t] = std::sqrt(sum);
  }
  return norms;
}

} // namespace

std::vector<Row> evaluateGroup(const spec::Variant &variant, const tree::KvTree &tree,
                               const exec::Inputs &inputs, int query, int kvHead, Precision precision,
                               const exec::Selection *selection) {
  const std::vector<Token> tokens = tokensOnPath(tree, query);
  const spec::Tensors &tensors = variant.tensors;
  const int keyDim = tensors.k.dim, valueDim = tensors.v.dim;
  const std::vector<float> keys =
      gather({inputs.k.data(), inputs.cache.k, tensors.k}, tokens, variant, inputs, kvHead);
  const std::vector<float> values =
      gather({inputs.values(variant).data(), inputs.cache.v, tensors.v}, tokens, variant, inputs, kvHead);
  const bool isExact = precision == Precision::Exact;
  const std::vector<double> norms = isExact ? normsOf(values, valueDim) : std::vector<double>();
  Evaluator evaluate(variant, inputs, precision);
  Elements elements(variant, inputs, precision);

  std::vector<Row> rows(variant.ratio());
  for (int inGroup = 0; inGroup < variant.ratio(); ++inGroup) {
    const Site site = siteOf(variant, tokens, query, kvHead * variant.ratio() + inGroup);
    std::vector<EitherWay> eitherWay;
    std::vector<double> q =
        elements.query(queryOf(variant, inputs, query, site.head), site, isExact ? &eitherWay : nullptr);
    const auto weigh = [&](std::vector<double> &weights) { // the lse
      const auto product = [&](std::size_t t) { return dot(q, &keys[t * keyDim]); };
      weights = scoresOf(variant, tokens, product, evaluate, site);
      if (selection)
        hideUnlisted(weights, selection->of(query, variant.listOf(site.head)));
      return normalize(variant, weights, evaluate, site);
    };
    Row &row = rows[inGroup];
    std::vector<double> weights;
    row.lse = weigh(weights);
    for (const auto &[dim, other] : eitherWay) {
      std::vector<double> unused;
      const double made = std::exchange(q[dim], other);
      if (const double lse = weigh(unused); lse != row.lse) // which may be infinite
        row.lseNoise += std::fabs(lse - row.lse);
      q[dim] = made;
    }

    row.out.assign(valueDim, 0.0);
    RowNoise noise(variant);
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      for (int d = 0; d < valueDim; ++d)
        row.out[d] += weights[t] * values[t * valueDim + d];
      if (isExact)
        noise.add(weights[t], norms[t], row.out);
    }
    row.noise = isExact ? noise.of(row.out) : 0;
    row.out = elements.output(row.out, site, row.noise);
    if (!isExact)
      for (double &value : row.out)
        value = exec::roundTo(value, tensors.out.dtype);
  }
  return rows;
}

std::vector<double> evaluateScores(const spec::Variant &variant, const tree::KvTree &tree,
                                   const exec::Inputs &inputs, int query, int head,
                                   std::vector<double> *bounds) {
  const std::vector<Token> tokens = tokensOnPath(tree, query);
  const spec::TensorType &type = variant.tensors.k;
  const std::vector<float> keys =
      gather({inputs.k.data(), inputs.cache.k, type}, tokens, variant, inputs, head / variant.ratio());
  Evaluator evaluate(variant, inputs, Precision::Exact);
  const Site site = siteOf(variant, tokens, query, head);
  const std::vector<double> q =
      Elements(variant, inputs, Precision::Exact).query(queryOf(variant, inputs, query, head), site);
  // What `query` makes may be rounded to either side, any element of it.
  const double queryRounding = variant.query ? roundingOf(variant.tensors.q.dtype).relative : 0;
  std::vector<double> products(tokens.size()), moved(tokens.size());
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    double size = 0, squares = 0; // what roundings of the sum, and of q, are relative to
    for (int d = 0; d < type.dim; ++d) {
      const double product = q[static_cast<std::size_t>(d)] * keys[t * type.dim + d];
      size += std::fabs(product);
      squares += product * product;
    }
    products[t] = dot(q, &keys[t * type.dim]);
    moved[t] = size * kSumRounding + std::sqrt(squares) * queryRounding;
  }
  const auto scores = [&](double sign) {
    return scoresOf(
        variant, tokens, [&](std::size_t t) { return products[t] + sign * moved[t]; }, evaluate, site);
  };
  const std::vector<double> exact = scores(0);
  if (!bounds)
    return exact;
  const std::vector<double> above = scores(1), below = scores(-1);
  bounds->assign(tokens.size(), 0);
  for (std::size_t t = 0; t < tokens.size(); ++t)
    if (std::isfinite(exact[t]))
      (*bounds)[t] = std::fabs(above[t] - exact[t]) + std::fabs(below[t] - exact[t]) +
                     kScoreRounding * std::fabs(exact[t]);
  return exact;
}

Weights weightsOfZeroKeys(const spec::Variant &variant, const tree::KvTree &tree, const exec::Inputs &inputs,
                          int query, int head) {
  const std::vector<Token> tokens = tokensOnPath(tree, query);
  Evaluator evaluate(variant, inputs, Precision::Exact);
  Weights weights;
  const Site site = siteOf(variant, tokens, query, head);
  weights.ofToken = scoresOf(variant, tokens, [](std::size_t) { return 0.0; }, evaluate, site);
  for (const double score : weights.ofToken)
    weights.topScore = std::max(weights.topScore, score);
  weights.lse = normalize(variant, weights.ofToken, evaluate, site);
  return weights;
}

} // namespace deft::reference
