#include "runtime/reference/Check.h"

#include "runtime/exec/Half.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <sstream>
#include <thread>
#include <utility>

namespace deft::reference {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Checks one query after the other; each thread has its own and they are joined at the end.
class Checker {
public:
  Checker(const spec::Variant &variant, const tree::KvTree &tree, const exec::Inputs &inputs,
          const exec::Outputs &outputs, const exec::Selection *selection)
      : variant_(variant), tree_(tree), inputs_(inputs), outputs_(outputs), selection_(selection) {
    report_.hasLse = variant.withLse && variant.normalize == spec::Normalize::Softmax;
  }

  void check(int query) {
    for (int kvHead = 0; kvHead < variant_.kvHeads; ++kvHead) {
      const auto rows = boundGroup(variant_, tree_, inputs_, query, kvHead, selection_);
      for (int i = 0; i < variant_.ratio(); ++i)
        compare(query, kvHead * variant_.ratio() + i, rows[i]);
    }
  }

  /// Takes the worse of both; ties go to the smaller query, so that the report does not depend on threads.
  void join(const Checker &other) {
    const CheckReport &theirs = other.report_;
    report_.rows += theirs.rows;
    report_.blindRows += theirs.blindRows;
    noteUndefined(theirs.undefinedQuery, theirs.undefinedHead, theirs.undefinedRows);
    if (isWorse(theirs.share(), theirs.worstQuery, report_.share(), report_.worstQuery)) {
      report_.error = theirs.error;
      report_.plainError = theirs.plainError;
      report_.allowed = theirs.allowed;
      report_.worstQuery = theirs.worstQuery;
      report_.worstHead = theirs.worstHead;
    }
    if (isWorse(theirs.lseShare(), theirs.worstLseQuery, report_.lseShare(), report_.worstLseQuery)) {
      report_.lseError = theirs.lseError;
      report_.lseAllowed = theirs.lseAllowed;
      report_.worstLseQuery = theirs.worstLseQuery;
      report_.worstLseHead = theirs.worstLseHead;
    }
  }

  CheckReport report_;

private:
  void noteUndefined(int query, int head, long long rows) {
    report_.undefinedRows += rows;
    if (rows > 0 && (report_.undefinedQuery < 0 ||
                     std::pair(query, head) < std::pair(report_.undefinedQuery, report_.undefinedHead))) {
      report_.undefinedQuery = query;
      report_.undefinedHead = head;
    }
  }

  static bool isWorse(double error, int query, double than, int thanQuery) {
    return query >= 0 && (thanQuery < 0 || error > than || (error == than && query < thanQuery));
  }

  void compare(int query, int head, const BoundedRow &bounded) {
    ++report_.rows;
    report_.blindRows += bounded.exact.seesNothing ? 1 : 0;
    if (!bounded.exact.isDefined())
      return noteUndefined(query, head, 1);
    const std::size_t row = static_cast<std::size_t>(query) * variant_.queryHeads + head;
    const auto &[dtype, dim] = variant_.tensors.out;
    std::vector<double> actual(dim);
    for (int d = 0; d < dim; ++d)
      actual[d] = exec::toFloat(outputs_.out[row * dim + d], dtype);
    const double error = relativeError(bounded.exact.out, actual);
    const double share = error == 0 ? 0 : error / bounded.allowed;
    if (isWorse(share, query, report_.share(), report_.worstQuery)) {
      report_.error = error;
      report_.plainError = bounded.plainError;
      report_.allowed = bounded.allowed;
      report_.worstQuery = query;
      report_.worstHead = head;
    }
    if (!report_.hasLse)
      return;
    const double lseError = lseDistance(bounded.exact.lse, outputs_.lse[row]);
    const double lseAllowed = kLseTolerance + bounded.exact.lseNoise;
    if (isWorse(lseError / lseAllowed, query, report_.lseShare(), report_.worstLseQuery)) {
      report_.lseError = lseError;
      report_.lseAllowed = lseAllowed;
      report_.worstLseQuery = query;
      report_.worstLseHead = head;
    }
  }

  const spec::Variant &variant_;
  const tree::KvTree &tree_;
  const exec::Inputs &inputs_;
  const exec::Outputs &outputs_;
  const exec::Selection *selection_;
};

} // namespace

double relativeError(const std::vector<double> &exact, const std::vector<double> &actual) {
  double norm = 0, distance = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    norm += exact[i] * exact[i];
    distance += (actual[i] - exact[i]) * (actual[i] - exact[i]);
  }
  if (std::isnan(distance))
    return kInfinity;
  if (norm == 0)
    return distance == 0 ? 0 : kInfinity;
  return std::sqrt(distance / norm);
}

double lseDistance(double exact, double actual) {
  if (exact == actual)
    return 0;
  const double distance = std::fabs(exact - actual);
  return std::isnan(distance) ? kInfinity : distance;
}

std::vector<int> queriesToCheck(const spec::Variant &variant, const tree::KvTree &tree,
                                long long mostRowTokens) {
  const int count = static_cast<int>(tree.queries().size());
  long long total = 0;
  for (const tree::Query &query : tree.queries())
    total += static_cast<long long>(tree.pathTokens(query)) * variant.queryHeads;
  long long wanted = count;
  if (mostRowTokens > 0 && total > mostRowTokens)
    wanted =
        std::max<long long>(static_cast<long long>(static_cast<double>(mostRowTokens) / total * count), 2);
  wanted = std::min<long long>(wanted, count);
  std::vector<int> queries(wanted);
  for (long long i = 0; i < wanted; ++i)
    queries[i] = wanted == 1 ? 0 : static_cast<int>(i * (count - 1) / (wanted - 1));
  return queries;
}

std::vector<BoundedRow> boundGroup(const spec::Variant &variant, const tree::KvTree &tree,
                                   const exec::Inputs &inputs, int query, int kvHead,
                                   const exec::Selection *selection) {
  const auto evaluate = [&](Precision precision) {
    return evaluateGroup(variant, tree, inputs, query, kvHead, precision, selection);
  };
  std::vector<Row> exact = evaluate(Precision::Exact);
  const std::vector<Row> plain = evaluate(Precision::Plain);
  std::vector<Row> single;
  std::vector<BoundedRow> rows(exact.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    double error = relativeError(exact[i].out, plain[i].out);
    if (error == kInfinity) {
      if (single.empty())
        single = evaluate(Precision::Single);
      error = relativeError(exact[i].out, single[i].out);
    }
    rows[i].plainError = error < kInfinity ? error : 0;
    rows[i].allowed = kPlainFactor * rows[i].plainError + exact[i].noise;
    rows[i].exact = std::move(exact[i]);
  }
  return rows;
}

namespace {

/// So that the first of them, however many, are spread over all: every gap's middle comes before the next
/// smaller gaps'.
std::vector<int> spread(const std::vector<int> &queries) {
  std::vector<int> order;
  order.reserve(queries.size());
  std::size_t stride = std::bit_ceil(queries.size());
  for (std::size_t i = 0; i < queries.size(); i += std::max<std::size_t>(stride, 1))
    order.push_back(queries[i]);
  for (; stride > 1; stride /= 2)
    for (std::size_t i = stride / 2; i < queries.size(); i += stride)
      order.push_back(queries[i]);
  return order;
}

} // namespace

CheckReport check(const spec::Variant &variant, const tree::KvTree &tree, const exec::Inputs &inputs,
                  const exec::Outputs &outputs, const CheckOptions &options) {
  const std::vector<int> queries = spread(queriesToCheck(variant, tree, options.mostRowTokens));
  const auto isLate = [&] {
    return options.deadline && std::chrono::steady_clock::now() > *options.deadline;
  };
  const int threads = std::clamp(options.threads, 1, std::max(static_cast<int>(queries.size()), 1));
  std::vector<Checker> checkers(threads, Checker(variant, tree, inputs, outputs, options.selection));
  std::atomic<std::size_t> next = 0, done = 0;
  const auto work = [&](Checker &checker) {
    for (std::size_t i; (i = next.fetch_add(1)) < queries.size() && (i == 0 || !isLate());) {
      checker.check(queries[i]);
      if (const std::size_t count = done.fetch_add(1) + 1; options.progress)
        options.progress(static_cast<long long>(count), static_cast<long long>(queries.size()));
    }
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t)
    others.emplace_back(work, std::ref(checkers[t]));
  work(checkers[0]);
  for (std::thread &thread : others)
    thread.join();
  for (int t = 1; t < threads; ++t)
    checkers[0].join(checkers[t]);

  CheckReport report = checkers[0].report_;
  report.queriesChecked = static_cast<int>(done);
  report.queries = static_cast<int>(tree.queries().size());
  return report;
}

std::string explainFailure(const CheckReport &report) {
  std::ostringstream text;
  const auto next = [&]() -> std::ostream & { return text << (text.tellp() > 0 ? "; " : ""); };
  if (!report.notFinite.empty())
    next() << report.notFinite;
  else if (!report.isDefined())
    next() << "query " << report.undefinedQuery << ", head " << report.undefinedHead
           << ": the spec itself gives NaN or an infinity, which leaves nothing to compare, in "
           << report.undefinedRows << " of " << report.rows << " rows";
  if (!(report.share() <= 1))
    next() << "query " << report.worstQuery << ", head " << report.worstHead << ": relative error "
           << report.error << ", allowed " << report.allowed;
  if (!(report.lseShare() <= 1))
    next() << "query " << report.worstLseQuery << ", head " << report.worstLseHead << ": lse off by "
           << report.lseError << ", allowed " << report.lseAllowed;
  if (report.count && !report.count->passed())
    next() << "counting inputs: " << report.count->fault;
  return text.str();
}

} // namespace deft::reference
