#pragma once

/// Requests with drafts whose tokens lie on several ranks: the table of all, each rank's cache, and what each
/// draft sees, in float64.

#include "tests/support/DraftTrees.h"

#include <deft/deft.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace deft::test {

class RankedDrafts {
public:
  static constexpr int kPageSize = 16, kQueryHeads = 4, kKvHeads = 2, kHeadDim = 64;
  static constexpr int kRowElements = kQueryHeads * kHeadDim, kTokenElements = kKvHeads * kHeadDim;
  static constexpr int kPrompt = 70, kMostTokens = 448; ///< of a request; the first pages are shared

  struct Layout {
    RankLayout kind = RankLayout::Interleaved;
    int count = 1, unit = 1;
    bool areDraftsWhole = false; ///< by page: all pages behind a request's tokens lie on one rank
    std::string name() const {
      return std::to_string(count) + " ranks, " +
             (kind == RankLayout::ByPage ? areDraftsWhole ? "whole drafts" : "pages"
                                         : "units of " + std::to_string(unit));
    }
  };
  /// Every kind of layout, on 1 to 4 ranks.
  static std::vector<Layout> layouts() {
    std::vector<Layout> all;
    for (int count = 1; count <= 4; ++count) {
      for (const int unit : {1, 4, 16})
        all.push_back({RankLayout::Interleaved, count, unit});
      for (const bool areWhole : {false, true})
        all.push_back({RankLayout::ByPage, count, kPageSize, areWhole});
    }
    return all;
  }

  RankedDrafts(const Layout &layout, std::vector<DraftParents> trees, unsigned seed)
      : random_(seed), layout_(layout), trees_(std::move(trees)) {
    std::normal_distribution<float> normal;
    for (std::vector<std::uint16_t> *values : {&k_, &v_, &q_}) {
      values->resize(values == &q_ ? index(count() * 256 * kRowElements)
                                   : index((count() + 1) * kMostTokens * kTokenElements));
      for (std::uint16_t &value : *values)
        value = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(normal(random_)) >> 16);
    }
    for (int r = 0; r < count(); ++r) {
      lengths_.push_back(kPrompt + static_cast<int>(random_() % 40));
      drafts_.push_back(static_cast<int>(trees_[index(r)].size()));
    }
    makeTable();
    redraw();
  }

  PagedRequests requests() const { return {.table = table(), .lengths = lengths_, .drafts = drafts_}; }
  PageTable table() const {
    return {.entries = entries_,
            .rowStride = rowPages(),
            .holders = isByPage() ? std::span<const int>(holders_) : std::span<const int>()};
  }
  Ranks ranks(int rank) const {
    return {.count = layout_.count, .rank = rank, .layout = layout_.kind, .unit = layout_.unit};
  }
  /// Tokens before the drafts, as only a device knows; null: as planned.
  DraftMask mask(const std::vector<int> *lengths = nullptr) const {
    return {.bits = bits_.data(),
            .drafts = rows_,
            .requests = count(),
            .lengths = lengths ? lengths->data() : nullptr};
  }
  const std::vector<int> &entries() const { return entries_; }
  const std::vector<std::uint16_t> &q() const { return q_; }
  std::vector<int> &lengths() { return lengths_; }
  std::vector<std::uint32_t> &bits() { return bits_; }
  int rows() const { return rows_; }
  int count() const { return static_cast<int>(trees_.size()); }
  int queries() const {
    int all = 0;
    for (const int drafts : drafts_)
      all += drafts;
    return all;
  }

  /// The same trees with other numbers.
  void redraw() {
    rows_ = std::max(1, *std::max_element(drafts_.begin(), drafts_.end()));
    const int words = rows_ * ((rows_ + 31) / 32);
    bits_.resize(index(count() * words)); // where a graph reads it
    for (int r = 0; r < count(); ++r) {
      trees_[index(r)] = renumbered(trees_[index(r)], random_);
      const auto mask = maskOf(trees_[index(r)], rows_, random_);
      std::copy(mask.begin(), mask.end(), bits_.begin() + r * words);
    }
  }

  /// A rank's cache, with NaN wherever it has no token.
  struct Cache {
    std::vector<std::uint16_t> k, v;
  };
  Cache cacheOf(int rank, const std::vector<int> &lengths) const {
    Cache cache;
    cache.k.assign(index(pages_ * kPageSize * kTokenElements), 0x7fff);
    cache.v = cache.k;
    for (int r = 0; r < count(); ++r)
      for (int t = 0; t < lengths[index(r)] + drafts_[index(r)]; ++t) {
        const auto [holder, slot] = placeOf(r, t);
        if (holder != rank)
          continue;
        const auto from = index(tokenOf(r, t) * kTokenElements), to = index(slot * kTokenElements);
        std::copy_n(k_.begin() + static_cast<std::ptrdiff_t>(from), kTokenElements,
                    cache.k.begin() + static_cast<std::ptrdiff_t>(to));
        std::copy_n(v_.begin() + static_cast<std::ptrdiff_t>(from), kTokenElements,
                    cache.v.begin() + static_cast<std::ptrdiff_t>(to));
      }
    return cache;
  }

  /// Compares merged results with each draft alone, token by token.
  void expectRight(const std::vector<double> &out, const std::vector<double> &lse,
                   const std::vector<int> &lengths) const {
    int query = 0;
    for (int r = 0; r < count(); ++r)
      for (int draft = 0; draft < drafts_[index(r)]; ++draft, ++query) {
        std::vector<int> tokens;
        for (int t = 0; t < lengths[index(r)]; ++t)
          tokens.push_back(tokenOf(r, t));
        for (int other = 0; other < drafts_[index(r)]; ++other)
          if (doesSee(trees_[index(r)], draft, other))
            tokens.push_back(tokenOf(r, lengths[index(r)] + other));
        for (int head = 0; head < kQueryHeads; ++head)
          ASSERT_TRUE(isRowRight(out, lse, query, head, tokens)) << "request " << r << ", draft " << draft;
      }
  }

  static double wide(std::uint16_t half) { return std::bit_cast<float>(std::uint32_t{half} << 16); }
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

private:
  bool isByPage() const { return layout_.kind == RankLayout::ByPage; }
  int pageTokens() const { return kPageSize * (isByPage() ? 1 : layout_.count); }
  int rowPages() const { return (kMostTokens + pageTokens() - 1) / pageTokens(); }

  /// By page, each rank numbers its pages from 0.
  void makeTable() {
    std::vector<int> free(index(layout_.count), 0);
    for (int r = 0; r < count(); ++r)
      for (int p = 0; p < rowPages(); ++p) {
        const bool isShared = (p + 1) * pageTokens() <= kPrompt;
        const bool isWhole = layout_.areDraftsWhole && (p + 1) * pageTokens() > lengths_[index(r)];
        const int holder = !isByPage() ? 0
                           : isShared  ? p % layout_.count
                           : isWhole   ? r % layout_.count
                                       : static_cast<int>(random_() % index(layout_.count));
        holders_.push_back(holder);
        entries_.push_back(isShared && r > 0 ? entries_[index(p)] : free[index(holder)]++);
      }
    pages_ = *std::max_element(free.begin(), free.end());
  }
  /// Rank and slot there.
  std::pair<int, int> placeOf(int request, int position) const {
    const int entry = request * rowPages() + position / pageTokens(), at = position % pageTokens();
    const int page = entries_[index(entry)] * kPageSize, all = layout_.unit * layout_.count;
    if (isByPage())
      return {holders_[index(entry)], page + at};
    return {at / layout_.unit % layout_.count, page + at / all * layout_.unit + at % layout_.unit};
  }
  /// In the data of all.
  int tokenOf(int request, int position) const {
    const bool isShared = (position / pageTokens() + 1) * pageTokens() <= kPrompt;
    return (isShared ? 0 : request + 1) * kMostTokens + position;
  }

  bool isRowRight(const std::vector<double> &out, const std::vector<double> &lse, int query, int head,
                  const std::vector<int> &tokens) const {
    const int row = query * kQueryHeads + head;
    std::vector<double> sum(kHeadDim);
    double weights = 0;
    for (const int token : tokens) {
      const int at = token * kTokenElements + head / (kQueryHeads / kKvHeads) * kHeadDim;
      double score = 0;
      for (int d = 0; d < kHeadDim; ++d)
        score += wide(q_[index(row * kHeadDim + d)]) * wide(k_[index(at + d)]);
      const double weight = std::exp(0.25 * score);
      weights += weight;
      for (int d = 0; d < kHeadDim; ++d)
        sum[index(d)] += weight * wide(v_[index(at + d)]);
    }
    bool isRight = std::abs(lse[index(row)] - std::log(weights)) < 1e-3;
    for (int d = 0; d < kHeadDim; ++d) {
      const double exact = sum[index(d)] / weights;
      isRight = isRight && std::abs(out[index(row * kHeadDim + d)] - exact) < 0.01 + 0.01 * std::abs(exact);
    }
    return isRight;
  }

  std::mt19937 random_;
  Layout layout_;
  std::vector<DraftParents> trees_;
  std::vector<std::uint16_t> q_, k_, v_;
  std::vector<int> entries_, holders_, lengths_, drafts_;
  std::vector<std::uint32_t> bits_;
  int rows_ = 0;  ///< of a request in the mask
  int pages_ = 0; ///< of a rank's cache
};

} // namespace deft::test
