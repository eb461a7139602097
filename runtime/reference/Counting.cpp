#include "runtime/reference/Counting.h"

#include "compiler/support/Numbers.h"
#include "runtime/exec/ScaledRow.h"
#include "runtime/reference/Check.h"
#include "runtime/reference/Elements.h"
#include "runtime/reference/Noise.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

namespace deft::reference {

namespace {

/// The share that is taken of the most tokens a column may have: the rest is for the roundings of f32.
constexpr double kShareOfColumn = 15.0 / 16;

int columnTokensOf(const spec::Variant &variant) {
  return std::max(1, static_cast<int>(kShareOfColumn / (2 * Roundings::of(variant).relative())));
}

/// Of the f32 arithmetic of `output`, relative.
constexpr double kHookRounding = 0x1p-18;

/// What may move the sum of a column.
class Tolerance {
public:
  Tolerance(const spec::Variant &variant, const Weights &weights) : roundings_(Roundings::of(variant)) {
    // f32 rounds the scores, the reference that they are taken relative to and the partials' lse, each to
    // 2^-24 of itself, and some steps of exponentials. A score whose weight counts at all is less than 96
    // below the largest. A GPU's tanh is off by up to 1e-5 of its value.
    const double score = std::isfinite(weights.topScore) ? std::fabs(weights.topScore) : 0;
    relative_ = roundings_.relative() + 0x1p-21 * (96 + score) + (usesTanh(variant) ? 0x1p-16 * score : 0);
    // Weights below the normal numbers may become 0. They are taken relative to a reference: the largest one
    // is then 1/64 at least, because the first tile of 64 tokens has a sum of at least 1.
    constexpr double kLeastNormal = 0x1p-126;
    const double largest = variant.normalize == spec::Normalize::Softmax ? 64 * weights.topWeight : 1;
    ofToken_ = largest * std::max(roundings_.weight.absolute, kLeastNormal);
    ofColumn_ = roundings_.partial.absolute + roundings_.output.absolute + 2 * kLeastNormal;
  }

  /// `size`: of the summands, their signs aside.
  double of(double size, int tokens) const {
    return tokens == 0 ? 0 : relative_ * size + tokens * ofToken_ + ofColumn_;
  }

private:
  static bool usesTanh(const spec::Variant &variant) {
    return std::any_of(variant.exprs.begin(), variant.exprs.end(),
                       [](const spec::Expr &expr) { return expr.op == spec::ExprOp::Tanh; });
  }

  Roundings roundings_;
  double relative_ = 0, ofToken_ = 0, ofColumn_ = 0;
};

} // namespace

/// Judges one query after the other; each thread has its own and they are joined at the end.
struct Counting::Judge {
  const Counting &counting;
  Elements elements{counting.variant_, counting.inputs_, Precision::Exact}; ///< of `output`
  CountReport report = {};
  std::size_t firstWrong = std::numeric_limits<std::size_t>::max(); ///< index of queries_

  void judge(std::size_t index) {
    const spec::Variant &variant = counting.variant_;
    for (int head = 0; head < variant.queryHeads; ++head) {
      const std::string fault = faultOf(index, head);
      if (fault.empty())
        continue;
      ++report.wrongRows;
      if (index < firstWrong) {
        firstWrong = index;
        report.fault = "query " + std::to_string(counting.queries_[index]) + ", head " +
                       std::to_string(head) + ": " + fault;
      }
    }
  }

  void join(const Judge &other) {
    report.pairs += other.report.pairs;
    report.noticeable += other.report.noticeable;
    report.wrongRows += other.report.wrongRows;
    report.worst = std::max(report.worst, other.report.worst);
    if (other.firstWrong < firstWrong) {
      firstWrong = other.firstWrong;
      report.fault = other.report.fault;
    }
  }

private:
  std::string faultOf(std::size_t index, int head) {
    const spec::Variant &variant = counting.variant_;
    const std::size_t row = index * static_cast<std::size_t>(variant.queryHeads) + head;
    Weights made;
    if (counting.weights_.empty())
      made = weightsOfZeroKeys(variant, counting.tree_, counting.inputs_, counting.queries_[index], head);
    const Weights &weights = counting.weights_.empty() ? made : counting.weights_[row];
    const Tolerance tolerance(variant, weights);
    std::string fault;
    for (int pass = 0; pass < counting.passes(); ++pass) {
      if (!counting.outputs_[pass])
        continue;
      const exec::Outputs &outputs = *counting.outputs_[pass];
      std::string found = columnFault(pass, weights, tolerance, &outputs.out[row * variant.tensors.out.dim],
                                      siteOf(index, head));
      if (found.empty() && !outputs.lse.empty())
        if (const double error = lseDistance(weights.lse, outputs.lse[row]); !(error <= kLseTolerance))
          found = "lse off by " + support::significant(error, 2);
      if (fault.empty())
        fault = std::move(found);
    }
    return fault;
  }

  /// Where a row's output stands.
  Site siteOf(std::size_t index, int head) const {
    const int query = counting.queries_[index];
    Site site;
    site.query = query;
    site.qPos = counting.tree_.pathTokens(counting.tree_.queries()[static_cast<std::size_t>(query)]) - 1;
    site.head = head;
    site.kvHead = head / counting.variant_.ratio();
    return site;
  }

  /// A column as `output` makes it.
  struct Column {
    double is, allowed;
  };
  Column asWritten(Column sum, int column, const Site &site) {
    if (!counting.variant_.changesRows())
      return sum;
    const double is = elements.output(sum.is, column, site);
    const double above = elements.output(sum.is + sum.allowed, column, site),
                 below = elements.output(sum.is - sum.allowed, column, site);
    const Rounding rounding = roundingOf(counting.variant_.tensors.out.dtype);
    return {is, std::max(std::fabs(above - is), std::fabs(below - is)) + rounding.relative * std::fabs(is) +
                    rounding.absolute + kHookRounding * std::fabs(is)};
  }

  /// What is wrong in the columns of a pass; empty: nothing.
  std::string columnFault(int pass, const Weights &weights, const Tolerance &tolerance,
                          const std::uint16_t *out, const Site &site) {
    const spec::TensorType &tensor = counting.variant_.tensors.out;
    const Stretch stretch = counting.stretchOf(pass);
    const int kvHead = site.kvHead, end = static_cast<int>(weights.ofToken.size());
    std::string fault;
    for (int c = 0; c < tensor.dim; ++c) {
      const int first = std::min(stretch.begin + c * counting.columnTokens_, std::min(stretch.end, end)),
                last = std::min({first + counting.columnTokens_, stretch.end, end});
      double sum = 0, size = 0;
      for (int t = first; t < last; ++t) {
        sum += weights.ofToken[t];
        size += std::fabs(weights.ofToken[t]);
      }
      const int column = (c + kvHead) % tensor.dim;
      const auto [written, allowed] = asWritten({sum, tolerance.of(size, last - first)}, column, site);
      for (int t = first; t < last; ++t)
        if (const double weight = weights.ofToken[t]; weight != 0) {
          ++report.pairs;
          report.noticeable +=
              std::fabs(asWritten({sum - weight, 0}, column, site).is - written) > 2 * allowed;
        }
      const double is = exec::toFloat(out[column], tensor.dtype);
      const double off = std::fabs(is - written);
      if (off == 0)
        continue;
      if (allowed > 0)
        report.worst = std::max(report.worst, off / allowed);
      if (!(off <= allowed) && fault.empty())
        fault = first == last ? "what no token has weighs " + support::significant(is, 3)
                              : "the tokens at positions " + std::to_string(first) + " to " +
                                    std::to_string(last - 1) + " weigh " + support::significant(is, 4) +
                                    " together, not " + support::significant(written, 4);
    }
    return fault;
  }
};

Counting::Counting(const spec::Variant &variant, tree::KvTree tree, const exec::Inputs &inputs,
                   const CountOptions &options)
    : variant_(variant), tree_(std::move(tree)), inputs_(inputs), options_(options),
      columnTokens_(columnTokensOf(variant)),
      queries_(queriesToCheck(variant, tree_, options.mostRowTokens)) {
  for (const tree::Query &query : tree_.queries())
    longest_ = std::max(longest_, tree_.pathEnd(query)); // more than it sees at most, as a rule no more
  outputs_.resize(std::max(1, (longest_ + passTokens() - 1) / passTokens()));
  // Only tokens: what else is in the pool stays as it is, and may be NaN.
  const int pageSize = variant.cache.pageSize;
  // A hook of K may make anything of rows of 0, of which a norm without epsilon makes NaN.
  const bool hasZeroQueries = variant.key && !variant.query && !variant.tensors.valueInKey;
  for (const tree::Node &node : tree_.nodes())
    for (int t = 0; t < node.tokens; ++t)
      for (int head = 0; head < variant.kvHeads && inputs_.hasPage(node.location + t, pageSize); ++head) {
        const auto clear = [](auto &memory, long long at, const spec::TensorType &tensor) {
          for (int d = 0; d < tensor.dim; ++d)
            exec::setBitsAt(memory.data(), at + d, tensor.dtype, 0);
        };
        if (!hasZeroQueries)
          clear(inputs_.k, inputs_.keyAt(node.location + t, pageSize, head), variant.tensors.keyRow());
        for (int column = 0; variant.tensors.hasScales() && column < variant.tensors.v.dim;
             column += variant.tensors.scaleColumns)
          exec::setScale(variant.tensors, inputs_.k.data(), inputs_.keyAt(node.location + t, pageSize, head),
                         column, 1);
        if (!variant.tensors.valueInKey)
          clear(inputs_.v, inputs_.valueAt(node.location + t, pageSize, head), variant.tensors.v);
      }
  if (variant.tensors.valueInKey || hasZeroQueries) // marks of V are keys
    std::fill(inputs_.q.begin(), inputs_.q.end(), std::uint16_t{0});
}

Counting::Stretch Counting::stretchOf(int pass) const {
  return {pass * passTokens(), std::min((pass + 1) * passTokens(), longest_)};
}

void Counting::mark(int pass, std::uint16_t value) {
  const int pageSize = variant_.cache.pageSize;
  const Stretch stretch = stretchOf(pass);
  auto &values = variant_.tensors.valueInKey ? inputs_.k : inputs_.v;
  for (const tree::Node &node : tree_.nodes()) {
    const int begin = std::max(stretch.begin, node.position),
              end = std::min(stretch.end, node.position + node.tokens);
    for (int position = begin; position < end; ++position) {
      const int location = node.location + position - node.position;
      for (int head = 0; head < variant_.kvHeads && inputs_.hasPage(location, pageSize); ++head)
        exec::setBitsAt(values.data(), inputs_.valueAt(location, pageSize, head) + columnOf(position, head),
                        variant_.tensors.v.dtype, value);
    }
  }
}

exec::Inputs &Counting::inputs(int pass) {
  if (marked_ != pass) {
    if (marked_ >= 0)
      mark(marked_, 0);
    mark(pass, exec::fromFloat(1, variant_.tensors.v.dtype));
    marked_ = pass;
  }
  return inputs_;
}

void Counting::take(const exec::Outputs &outputs) {
  exec::Outputs &kept = outputs_[marked_].emplace();
  const auto keep = [&](const auto &from, auto &to, std::size_t rowElements) {
    for (const int query : queries_)
      to.insert(to.end(), from.begin() + query * rowElements, from.begin() + (query + 1) * rowElements);
  };
  const auto heads = static_cast<std::size_t>(variant_.queryHeads);
  keep(outputs.out, kept.out, heads * variant_.tensors.out.dim);
  if (!outputs.lse.empty())
    keep(outputs.lse, kept.lse, heads);
}

void Counting::dropCache() {
  inputs_.k = {};
  inputs_.v = {};
}

int Counting::threads() const {
  return std::clamp(options_.threads, 1, std::max(static_cast<int>(queries_.size()), 1));
}

void Counting::forEachQuery(const std::function<void(int, std::size_t)> &work) const {
  std::atomic<std::size_t> next = 0;
  const auto loop = [&](int thread) {
    for (std::size_t i; (i = next.fetch_add(1)) < queries_.size();)
      work(thread, i);
  };
  std::vector<std::jthread> others;
  for (int t = 1; t < threads(); ++t)
    others.emplace_back(loop, t);
  loop(0);
}

void Counting::keepWeights() {
  const auto heads = static_cast<std::size_t>(variant_.queryHeads);
  weights_.resize(queries_.size() * heads);
  forEachQuery([&](int, std::size_t index) {
    for (std::size_t head = 0; head < heads; ++head)
      weights_[index * heads + head] =
          weightsOfZeroKeys(variant_, tree_, inputs_, queries_[index], static_cast<int>(head));
  });
}

CountReport Counting::judge() {
  std::vector<Judge> judges(threads(), Judge{*this});
  forEachQuery([&](int thread, std::size_t index) { judges[thread].judge(index); });
  for (int t = 1; t < threads(); ++t)
    judges[0].join(judges[t]);
  CountReport report = std::move(judges[0].report);
  report.allPasses = passes();
  for (std::optional<exec::Outputs> &outputs : outputs_) {
    report.passes += outputs.has_value();
    outputs.reset();
  }
  return report;
}

support::Result<void> runPasses(Counting &counting, const Run &run, int mostPasses, int turn,
                                const Deadline &deadline) {
  const int all = counting.passes(), made = mostPasses > 0 ? std::min(mostPasses, all) : all;
  exec::Outputs outputs;
  for (int i = 0; i < made; ++i) {
    if (i > 0 && deadline && std::chrono::steady_clock::now() > *deadline)
      return {};
    const long long pass = (turn + static_cast<long long>(i) * all / made) % all;
    if (auto ran = run(counting.inputs(static_cast<int>(pass)), outputs); !ran)
      return ran;
    counting.take(outputs);
  }
  return {};
}

} // namespace deft::reference
