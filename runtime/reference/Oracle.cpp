#include "runtime/reference/Oracle.h"

#include "runtime/exec/ScaledRow.h"
#include "runtime/reference/ByteProducts.h"
#include "runtime/reference/Elements.h"
#include "runtime/reference/Noise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
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

/// Those that the mask's bound allows it to see.
std::vector<Token> tokensOnPath(const spec::Variant &variant, const tree::KvTree &tree, int query) {
  const tree::Query &q = tree.queries()[query];
  const bool isWhole = variant.bound == spec::MaskBound::Path;
  std::vector<Token> tokens(isWhole ? tree.pathEnd(q) : tree.pathTokens(q));
  // Of the query's own node; all of an ancestor.
  int visible = isWhole ? tree.nodes()[q.node].tokens : tree.seenTokens(q);
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
  bool isKeys; ///< or lies in K's memory
};

/// The vectors of all tokens for one KV head, as floats: [token][dim]; 0 where there are none.
std::vector<float> gather(const Cache &cache, const std::vector<Token> &tokens, const spec::Variant &variant,
                          const exec::Inputs &inputs, int kvHead) {
  const std::size_t dim = cache.tensor.dim;
  std::vector<float> vectors(tokens.size() * dim);
  const int pageSize = variant.cache.pageSize;
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    if (!inputs.hasPage(tokens[t].location, pageSize))
      continue;
    const long long first =
        exec::elementOf(cache.layout, inputs.pageTable.data(), pageSize, tokens[t].location, kvHead);
    for (std::size_t d = 0; d < dim; ++d) {
      const int column = static_cast<int>(d);
      vectors[t * dim + d] =
          cache.isKeys ? exec::keyElement(variant.tensors, cache.memory, first, column)
                       : exec::toFloat(exec::bitsAt(cache.memory, first + column, cache.tensor.dtype),
                                       cache.tensor.dtype);
    }
  }
  return vectors;
}

double dot(const std::vector<double> &q, const float *k) {
  double sum = 0;
  for (std::size_t d = 0; d < q.size(); ++d)
    sum += q[d] * k[d];
  return sum;
}

/// The error of q.k if a kernel rounds elements with scales to q's dtype, which it may (LANGUAGE.md, rule
/// A11). Six times the expected root mean square: a run checks millions of scores, and queries of one token
/// show each.
double scaledKeyNoise(const spec::Tensors &tensors, const std::vector<double> &q, const float *k) {
  double sum = 0;
  for (int d = 0; d < tensors.v.dim; ++d)
    sum += q[d] * k[d] * (q[d] * k[d]);
  return 6 / std::sqrt(3.0) * roundingOf(tensors.q.dtype).relative * std::sqrt(sum);
}

/// The keys of all tokens for one KV head, as q.k takes them.
class Keys {
public:
  /// `isEitherWay`: whether `moved` is to be asked.
  Keys(const spec::Variant &variant, const exec::Inputs &inputs, const std::vector<Token> &tokens, int kvHead,
       Precision precision, bool isEitherWay)
      : dim_(static_cast<std::size_t>(variant.tensors.k.dim)),
        rows_(gather({inputs.k.data(), inputs.cache.k, variant.tensors.k, true}, tokens, variant, inputs,
                     kvHead)) {
    if (!variant.key)
      return;
    Elements elements(variant, inputs, precision);
    eitherWay_.resize(tokens.size());
    Site site;
    site.kvHead = kvHead;
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      site.kvPos = tokens[t].position;
      const auto begin = rows_.begin() + static_cast<std::ptrdiff_t>(t * dim_);
      const std::vector<double> made = elements.key({begin, begin + static_cast<std::ptrdiff_t>(dim_)}, site,
                                                    isEitherWay ? &eitherWay_[t] : nullptr);
      std::copy(made.begin(), made.end(), begin); // of 16 bits: exactly
    }
  }

  const float *row(std::size_t token) const { return &rows_[token * dim_]; }
  bool areEitherWay() const {
    return std::any_of(eitherWay_.begin(), eitherWay_.end(), [](const auto &some) { return !some.empty(); });
  }
  /// How far elements that may be others move q.k.
  double moved(const std::vector<double> &q, std::size_t token) const {
    double sum = 0;
    if (!eitherWay_.empty())
      for (const auto &[dim, other] : eitherWay_[token])
        sum += std::fabs(q[dim] * (other - row(token)[dim]));
    return sum;
  }

private:
  std::size_t dim_;
  std::vector<float> rows_;
  std::vector<std::vector<EitherWay>> eitherWay_; ///< of each token; empty: there is no hook
};

/// Where the row of one head stands, but for the token.
Site siteOf(const spec::Variant &variant, const tree::KvTree &tree, int query, int head) {
  Site site;
  site.qPos = tree.pathTokens(tree.queries()[query]) - 1;
  site.head = head;
  site.kvHead = head / variant.ratio();
  site.query = query;
  return site;
}

/// The same at a token.
Site siteAt(Site row, const Token &token) {
  row.kvPos = token.position;
  row.depth = token.depth;
  row.location = token.location;
  return row;
}

/// Final scores of one row, of the product of q with each token's key; -inf where a token is hidden.
template <class Product>
std::vector<double> scoresOf(const spec::Variant &variant, const std::vector<Token> &tokens,
                             const Product &product, Evaluator &evaluate, const Site &row) {
  std::vector<double> scores(tokens.size());
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    Site site = siteAt(row, tokens[t]);
    site.s = evaluate.round(evaluate.round(product(t)) * variant.scale);
    const bool isVisible = !variant.mask || evaluate.boolean(*variant.mask, site);
    scores[t] = !isVisible ? -kInfinity : variant.score ? evaluate.f32(*variant.score, site) : site.s;
    if (variant.normalize == spec::Normalize::Sigmoid && variant.sigmoidBias && scores[t] != -kInfinity)
      scores[t] = evaluate.round(scores[t] + evaluate.f32(*variant.sigmoidBias, site));
  }
  return scores;
}

/// Scores become weights; returns the lse. Only the sum sees the sink. A score of NaN makes NaN of all.
/// `areBytes`: weights are rounded as products of 8 bits take them.
double softmax(std::vector<double> &scores, double sink, const Evaluator &evaluate, bool areBytes) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (std::any_of(scores.begin(), scores.end(), [](double score) { return std::isnan(score); })) {
    std::fill(scores.begin(), scores.end(), kNan);
    return kNan;
  }
  double largest = -kInfinity;
  for (double score : scores)
    largest = std::max(largest, score);
  const double top = std::max(largest, sink);
  if (top == -kInfinity) {
    std::fill(scores.begin(), scores.end(), 0.0);
    return -kInfinity;
  }
  double sum = std::exp(sink - top);
  for (double &score : scores)
    sum += score = std::exp(score - top);
  const double ofLargest = std::exp(largest - top);
  for (double &weight : scores)
    weight = areBytes && ofLargest > 0 ? asByteWeight(weight / ofLargest) * ofLargest / sum
                                       : evaluate.round(weight / sum);
  return top + std::log(sum);
}

/// From weights of tokens to what their V is multiplied by. What weighs nothing stays so.
void multiplyByFactors(const spec::Variant &variant, const std::vector<Token> &tokens,
                       std::vector<double> &weights, Evaluator &evaluate, const Site &row) {
  if (!variant.valueFactor)
    return;
  for (std::size_t t = 0; t < tokens.size(); ++t)
    if (weights[t] != 0)
      weights[t] = evaluate.round(weights[t] * evaluate.f32(*variant.valueFactor, siteAt(row, tokens[t])));
}

void sigmoid(std::vector<double> &scores, const Evaluator &evaluate) {
  for (double &score : scores)
    score = evaluate.round(1 / (1 + std::exp(-score)));
}

/// Scores become weights; returns the lse, which is 0 for sigmoid.
double normalize(const spec::Variant &variant, std::vector<double> &scores, Evaluator &evaluate,
                 const Site &site) {
  if (variant.normalize == spec::Normalize::Softmax)
    return softmax(scores, variant.sink ? evaluate.f32(*variant.sink, site) : -kInfinity, evaluate,
                   variant.tensors.byteProducts && !evaluate.isExact());
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

double normOf(const std::vector<double> &row) {
  return std::sqrt(std::inner_product(row.begin(), row.end(), row.begin(), 0.0));
}

/// Between the sums of values, [token][dim], by two sets of weights.
double distanceOf(const std::vector<double> &weights, const std::vector<double> &others,
                  const std::vector<float> &values) {
  if (weights.empty())
    return 0;
  std::vector<double> sum(values.size() / weights.size());
  for (std::size_t t = 0; t < weights.size(); ++t)
    for (std::size_t d = 0; d < sum.size(); ++d)
      sum[d] += (weights[t] - others[t]) * values[t * sum.size() + d];
  return normOf(sum);
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

bool Row::isDefined() const {
  return !std::isnan(lse) && lse != kInfinity &&
         std::all_of(out.begin(), out.end(), [](double value) { return std::isfinite(value); });
}

std::vector<Row> evaluateGroup(const spec::Variant &variant, const tree::KvTree &tree,
                               const exec::Inputs &inputs, int query, int kvHead, Precision precision,
                               const exec::Selection *selection) {
  const std::vector<Token> tokens = tokensOnPath(variant, tree, query);
  const spec::Tensors &tensors = variant.tensors;
  const int valueDim = tensors.v.dim;
  const std::vector<float> values =
      gather({inputs.values(variant).data(), inputs.cache.v, tensors.v, tensors.valueInKey}, tokens, variant,
             inputs, kvHead);
  const bool isExact = precision == Precision::Exact;
  const Keys keys(variant, inputs, tokens, kvHead, precision, isExact);
  const std::vector<double> norms = isExact ? normsOf(values, valueDim) : std::vector<double>();
  Evaluator evaluate(variant, inputs, precision);
  Elements elements(variant, inputs, precision);

  std::vector<Row> rows(variant.ratio());
  for (int inGroup = 0; inGroup < variant.ratio(); ++inGroup) {
    const Site site = siteOf(variant, tree, query, kvHead * variant.ratio() + inGroup);
    std::vector<EitherWay> eitherWay;
    std::vector<double> q =
        elements.query(queryOf(variant, inputs, query, site.head), site, isExact ? &eitherWay : nullptr);
    Row &row = rows[inGroup];
    std::vector<double> sumNoises(tokens.size()); // of q.k
    for (std::size_t t = 0; isExact && t < tokens.size(); ++t)
      sumNoises[t] = tensors.byteProducts  ? byteSumNoise(q, keys.row(t))
                     : tensors.hasScales() ? scaledKeyNoise(tensors, q, keys.row(t))
                                           : 0;
    // The lse, where q.k is off by so much of what it may be, by keys that may be others or by its sum.
    const auto weigh = [&](std::vector<double> &weights, double share = 0) {
      const auto product = [&](std::size_t t) {
        const double noise = share == 0 ? 0 : keys.moved(q, t) + sumNoises[t];
        return dot(q, keys.row(t)) + share * noise;
      };
      weights = scoresOf(variant, tokens, product, evaluate, site);
      if (selection)
        hideUnlisted(weights, selection->of(query, variant.listOf(site.head)));
      row.seesNothing =
          std::all_of(weights.begin(), weights.end(), [](double score) { return score == -kInfinity; });
      return normalize(variant, weights, evaluate, site);
    };
    std::vector<double> weights;
    row.lse = weigh(weights);
    const auto distance = [&](double share = 0) {
      std::vector<double> unused;
      const double lse = weigh(unused, share);
      return lse != row.lse ? std::fabs(lse - row.lse) : 0; // which may be infinite
    };
    double moved = 0; // of the output; elements of 16 bits move too little to show
    for (const auto &[dim, other] : eitherWay) {
      const double made = std::exchange(q[dim], other);
      if (tensors.byteProducts) {
        std::vector<double> others;
        const double lse = weigh(others);
        row.lseNoise += lse != row.lse ? std::fabs(lse - row.lse) : 0;
        moved += distanceOf(others, weights, values);
      } else {
        row.lseNoise += distance();
      }
      q[dim] = made;
    }
    if (isExact && tensors.hasScales() && !variant.score) { // tokens' roundings are independent
      double squares = 0;
      for (std::size_t t = 0; t < tokens.size(); ++t)
        squares += std::pow(weights[t] * sumNoises[t] * variant.scale, 2);
      row.lseNoise += std::sqrt(squares);
    } else if (isExact && (keys.areEitherWay() || tensors.byteProducts || tensors.hasScales())) {
      row.lseNoise += std::max(distance(1), distance(-1));
    }

    multiplyByFactors(variant, tokens, weights, evaluate, site);
    row.out.assign(valueDim, 0.0);
    RowNoise noise(variant);
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      for (int d = 0; d < valueDim; ++d)
        row.out[d] += weights[t] * values[t * valueDim + d];
      if (isExact)
        noise.add(weights[t], norms[t], row.out, sumNoises[t] * variant.scale);
    }
    row.noise = isExact ? noise.of(row.out) : 0;
    if (const double norm = moved > 0 ? normOf(row.out) : 0; norm > 0)
      row.noise += moved / norm;
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
  const std::vector<Token> tokens = tokensOnPath(variant, tree, query);
  const spec::TensorType &type = variant.tensors.k;
  const Keys keys(variant, inputs, tokens, head / variant.ratio(), Precision::Exact, /*isEitherWay=*/false);
  Evaluator evaluate(variant, inputs, Precision::Exact);
  const Site site = siteOf(variant, tree, query, head);
  const std::vector<double> q =
      Elements(variant, inputs, Precision::Exact).query(queryOf(variant, inputs, query, head), site);
  // What `query` and `key` make may be rounded to either side, any element of it.
  const double madeRounding =
      roundingOf(variant.tensors.q.dtype).relative * (variant.query.has_value() + variant.key.has_value());
  std::vector<double> products(tokens.size()), moved(tokens.size());
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    double size = 0, squares = 0; // what roundings of the sum, and of q, are relative to
    for (int d = 0; d < type.dim; ++d) {
      const double product = q[static_cast<std::size_t>(d)] * keys.row(t)[d];
      size += std::fabs(product);
      squares += product * product;
    }
    products[t] = dot(q, keys.row(t));
    moved[t] = size * kSumRounding + std::sqrt(squares) * madeRounding;
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

namespace {

/// q.k of what both hooks make, of keys that lie as 0 in the cache.
class ProductOfZeroKeys {
public:
  ProductOfZeroKeys(const spec::Variant &variant, const std::vector<Token> &tokens,
                    const exec::Inputs &inputs, const Site &row)
      : tokens_(tokens), row_(row), elements_(variant, inputs, Precision::Exact),
        zero_(static_cast<std::size_t>(variant.tensors.k.dim)),
        q_(elements_.query(queryOf(variant, inputs, row.query, row.head), row)) {}

  double operator()(std::size_t token) const {
    Site site = row_;
    site.kvPos = tokens_[token].position;
    const std::vector<double> key = elements_.key(zero_, site);
    return std::inner_product(key.begin(), key.end(), q_.begin(), 0.0);
  }

private:
  const std::vector<Token> &tokens_;
  Site row_;
  mutable Elements elements_; ///< which keeps room for values
  std::vector<double> zero_, q_;
};

} // namespace

Weights weightsOfZeroKeys(const spec::Variant &variant, const tree::KvTree &tree, const exec::Inputs &inputs,
                          int query, int head) {
  const std::vector<Token> tokens = tokensOnPath(variant, tree, query);
  Evaluator evaluate(variant, inputs, Precision::Exact);
  Weights weights;
  const Site site = siteOf(variant, tree, query, head);
  const auto product = [&](std::size_t) { return 0.0; };
  weights.ofToken =
      variant.key && variant.query
          ? scoresOf(variant, tokens, ProductOfZeroKeys(variant, tokens, inputs, site), evaluate, site)
          : scoresOf(variant, tokens, product, evaluate, site);
  for (const double score : weights.ofToken)
    weights.topScore = std::max(weights.topScore, score);
  weights.lse = normalize(variant, weights.ofToken, evaluate, site);
  for (const double weight : weights.ofToken)
    weights.topWeight = std::max(weights.topWeight, weight);
  multiplyByFactors(variant, tokens, weights.ofToken, evaluate, site);
  return weights;
}

} // namespace deft::reference
