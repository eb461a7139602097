// An engine with a block table of its own: requests come, share the pages of a system prompt, part where they
// write, decode and go, and their rows are overwritten at once. deft finds who shares what. Every output of
// every step is compared with PlainAttention, which knows only each request's tokens.
//
// usage: paged_batch [PACKAGE]       without a package the spec is compiled
#include "PlainAttention.h"

#include <deft/deft.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

namespace {

constexpr char kSpec[] = R"(
attention host_program {
  query_heads = 4;
  kv_heads    = 2;
  head_dim    = 64;
  kv_cache    = paged(page_size = 16, order = nhd);
  scale       = 0.25;
  output      = bf16 with lse;
})";
constexpr Shape kShape{4, 2, 64, 0.25};
constexpr int kPageSize = 16, kPages = 128, kRows = 12, kRowPages = 8;
constexpr int kTokenElements = kShape.kvHeads * kShape.headDim;
constexpr int kFree = -1; ///< what is written to rows that nobody has

struct Request {
  std::uint64_t id = 0;
  int row = 0;
  int tokens = 0;
  int queries = 1; ///< in the next step
};

class Engine {
public:
  explicit Engine(const deft::Attention &attention)
      : attention_(attention), runtime_(deft::Runtime::create({.threads = 2}).value()),
        batch_(deft::PagedBatch::make({.pageSize = kPageSize}).value()), users_(kPages),
        table_(kRows * kRowPages, kFree), k_(kPages * kPageSize * kTokenElements), v_(k_.size()) {
    for (int i = 0; i < 3; ++i)
      systemPrompt_.push_back(takePage());
    for (const int page : systemPrompt_)
      for (int t = 0; t < kPageSize; ++t)
        write(page * kPageSize + t);
  }

  /// Throws on an error of the library; returns the largest error of an output.
  double live() {
    for (int step = 0; step < 40; ++step) {
      const bool onlyGrew = step > 0 && step % 5 != 0;
      if (!onlyGrew)
        changeRequests();
      for (Request &request : requests_)
        if (request.queries == 1)
          append(request);
      runStep(onlyGrew);
      for (Request &request : requests_)
        request.queries = 1;
    }
    return worst_;
  }
  int plannedInPlace() const { return inPlace_; }
  double sharedTokens() const { return shared_; }

private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  int &entry(const Request &request, int page) {
    return table_[static_cast<std::size_t>(request.row * kRowPages + page)];
  }
  int slot(const Request &request, int token) {
    return entry(request, token / kPageSize) * kPageSize + token % kPageSize;
  }

  int takePage() {
    const auto free = std::find(users_.begin(), users_.end(), 0);
    *free = 1;
    return static_cast<int>(free - users_.begin());
  }
  void write(int slot) {
    for (auto *tensor : {&k_, &v_})
      for (int i = 0; i < kTokenElements; ++i)
        (*tensor)[static_cast<std::size_t>(slot * kTokenElements + i)] = toBf16(normal_(random_));
  }

  /// A new token. A last page that others have, too, is copied before it is written; then the request's
  /// pages are others than deft knows, so it takes another id.
  void append(Request &request) {
    const int page = request.tokens / kPageSize;
    if (request.tokens % kPageSize == 0) {
      entry(request, page) = takePage();
    } else if (int &last = entry(request, page); users_[static_cast<std::size_t>(last)] > 1) {
      const int own = takePage();
      for (auto *tensor : {&k_, &v_})
        std::copy_n(tensor->begin() + last * kPageSize * kTokenElements, kPageSize * kTokenElements,
                    tensor->begin() + own * kPageSize * kTokenElements);
      --users_[static_cast<std::size_t>(last)];
      last = own;
      request.id = ++lastId_;
    }
    write(slot(request, request.tokens++));
  }

  /// A request with the system prompt and a prompt of its own, whose last tokens are asked in one step.
  void begin() {
    Request request{++lastId_, freeRow(), 3 * kPageSize, 1};
    for (int page = 0; page < 3; ++page) {
      entry(request, page) = systemPrompt_[static_cast<std::size_t>(page)];
      ++users_[static_cast<std::size_t>(entry(request, page))];
    }
    const int own = 5 + below(20);
    for (int i = 0; i < own; ++i)
      append(request);
    request.queries = 4;
    requests_.push_back(request);
  }
  /// Another answer to the same prompt: all pages are shared, the last one until somebody writes.
  void fork(const Request &from) {
    Request other{++lastId_, freeRow(), from.tokens, 1};
    for (int page = 0; page * kPageSize < from.tokens; ++page) {
      entry(other, page) = entry(from, page);
      ++users_[static_cast<std::size_t>(entry(other, page))];
    }
    requests_.push_back(other);
  }
  void end(std::size_t which) {
    const Request request = requests_[which];
    for (int page = 0; page * kPageSize < request.tokens; ++page)
      --users_[static_cast<std::size_t>(entry(request, page))];
    std::fill_n(table_.begin() + request.row * kRowPages, kRowPages, kFree);
    requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(which));
  }
  int freeRow() {
    int row = 0;
    while (std::any_of(requests_.begin(), requests_.end(), [&](const Request &r) { return r.row == row; }))
      ++row;
    return row;
  }
  void changeRequests() {
    for (std::size_t i = requests_.size(); i-- > 0;)
      if (requests_[i].tokens > (kRowPages - 1) * kPageSize || (requests_.size() > 6 && i % 3 == 0))
        end(i);
    begin();
    begin();
    if (requests_.size() + 2 < kRows) {
      fork(requests_.back());
      fork(requests_.front());
    }
  }

  void runStep(bool onlyGrew) {
    std::vector<int> lengths, queryIndptr = {0}, rows;
    std::vector<std::uint64_t> ids;
    for (const Request &request : requests_) {
      lengths.push_back(request.tokens);
      rows.push_back(request.row);
      ids.push_back(request.id);
      queryIndptr.push_back(queryIndptr.back() + request.queries);
    }
    const deft::PageTable table{.entries = table_, .rowStride = kRowPages};
    // Behind a step with prompts the number of queries changes once more.
    if (onlyGrew && queryIndptr == lastIndptr_ && ids == lastIds_)
      batch_.grow(table, lengths).value();
    else
      batch_
          .update({.table = table, .lengths = lengths, .queryIndptr = queryIndptr, .rows = rows, .ids = ids})
          .value();
    lastIndptr_ = queryIndptr, lastIds_ = ids;
    if (plan_)
      inPlace_ += plan_->advance(batch_.tree()).value() == deft::Advanced::InPlace;
    else
      plan_.emplace(batch_.plan(attention_).value());
    const deft::SharingSummary sharing = batch_.summary();
    shared_ = std::max(shared_,
                       1 - static_cast<double>(sharing.tokens) / static_cast<double>(sharing.requestTokens));

    const std::size_t rowsOfQ = static_cast<std::size_t>(queryIndptr.back() * kShape.queryHeads);
    std::vector<std::uint16_t> q(rowsOfQ * kShape.headDim), out(q.size());
    std::vector<float> lse(rowsOfQ);
    for (std::uint16_t &value : q)
      value = toBf16(normal_(random_));
    runtime_
        .run(attention_, *plan_, {.q = q.data(), .k = k_.data(), .v = v_.data(), .pageTable = table_},
             {.out = out.data(), .lse = lse.data()})
        .value();
    for (std::size_t i = 0; i < requests_.size(); ++i)
      for (int query = queryIndptr[i]; query < queryIndptr[i + 1]; ++query)
        compare(requests_[i], requests_[i].tokens - (queryIndptr[i + 1] - query) + 1, query, q, out, lse);
  }

  /// A query that sees so many tokens of its request.
  void compare(const Request &request, int tokens, int query, const std::vector<std::uint16_t> &q,
               const std::vector<std::uint16_t> &out, const std::vector<float> &lse) {
    std::vector<TokenVectors> own;
    for (const auto *tensor : {&k_, &v_})
      for (int t = 0; t < tokens; ++t) {
        const auto begin = tensor->begin() + slot(request, t) * kTokenElements;
        own.emplace_back(begin, begin + kTokenElements);
      }
    std::vector<const TokenVectors *> keys, values;
    for (int t = 0; t < tokens; ++t) {
      keys.push_back(&own[static_cast<std::size_t>(t)]);
      values.push_back(&own[static_cast<std::size_t>(tokens + t)]);
    }
    for (int head = 0; head < kShape.queryHeads; ++head) {
      const auto row = static_cast<std::size_t>(query * kShape.queryHeads + head);
      const PlainRow plain = plainAttention(kShape, head, &q[row * kShape.headDim], keys, values);
      // Written so that a NaN is not smaller.
      if (const double error = errorOf(plain, &out[row * kShape.headDim], lse[row]); !(error <= worst_))
        worst_ = error;
    }
  }

  deft::Attention attention_;
  deft::Runtime runtime_;
  deft::PagedBatch batch_;
  std::optional<deft::Plan> plan_;
  std::mt19937 random_{1};
  std::normal_distribution<float> normal_;
  std::vector<int> users_; ///< of each page
  std::vector<int> systemPrompt_, table_;
  std::vector<std::uint16_t> k_, v_;
  std::vector<Request> requests_;
  std::uint64_t lastId_ = 0;
  std::vector<int> lastIndptr_;
  std::vector<std::uint64_t> lastIds_;
  double worst_ = 0, shared_ = 0;
  int inPlace_ = 0;
};

} // namespace

int main(int argc, char **argv) try {
  const auto attention = argc > 1 ? deft::loadPackage(argv[1]) : deft::compileSpec(kSpec);
  Engine engine(attention.value());
  const double error = engine.live();
  std::printf("largest error %.2e, %d of 40 steps planned in place, up to %.0f %% of the tokens shared\n",
              error, engine.plannedInPlace(), 100 * engine.sharedTokens());
  // bf16 keeps 8 bits: a row is off by some 2^-9 when only its output is rounded.
  const bool isRight = error <= 0x1p-7 && engine.plannedInPlace() > 0 && engine.sharedTokens() > 0.3;
  std::puts(isRight ? "right" : "WRONG");
  return isRight ? 0 : 1;
} catch (const deft::BadResult &bad) {
  std::fprintf(stderr, "error: %s\n", bad.what());
  return 1;
}
