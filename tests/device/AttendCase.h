#pragma once

#include "tests/device/Words.h"

#include "deft/common/row_place.cuh"
#include "deft/common/warp_rows.cuh"
#include "deft/common/worth.cuh"
#include "deft/ptx/fp8.cuh"
#include "tests/device/ByteProducts.h"
#include "tests/device/CacheBoxes.h"
#include "tests/device/ItemLists.h"
#include "tests/device/ScaledRow.h"

#include <gtest/gtest.h>

#include <numeric>

namespace deft::test {

constexpr int kCasePlaces = 640; ///< tokens of a case's cache

/// A launch of an attend kernel on random items and random numbers, and what has to come of it, in double
/// precision and one token after the other. The largest error of a result is that of rounding to the type; a
/// token that is missed or seen twice shows in the logarithm of a row's sum.
template <class Config, class Variant> class AttendCase {
  using Query = typename Config::Query;
  using Key = typename Config::Key;
  using Value = typename Config::Value;
  static constexpr int kKeyDim = Config::kKeyDim, kValueDim = Config::kValueDim;
  static constexpr int kHeads = Config::kQueryHeads;
  static constexpr int kUnitHeads = Config::kKvHeads;                 ///< that an item has a unit for
  static constexpr int kKvHeads = kIsLatent<Config> ? 1 : kUnitHeads; ///< that the cache has
  static constexpr int kRopeDim = kKeyDim - kValueDim;                ///< of a latent cache
  using Scaled = ScaledRow<Config>;
  static constexpr int kPage = Config::kPageSize;
  static constexpr int kPlaces = kCasePlaces, kWholePages = kPlaces - kPlaces % (kPage > 0 ? kPage : 1);
  static constexpr bool kReadsLists = ItemLists<Config>::kAreThere;
  static constexpr int kUnitsOfItem = ItemLists<Config>::kAreTold ? 1 : kUnitHeads;

public:
  AttendCase(unsigned seed, const typename Variant::Params &params)
      : seed_(seed), params_(params), random_(seed), k_(kPlaces * kKvHeads * kMostRow + 8), v_(k_.size()),
        pageTable_(kPlaces / std::max(kPage, 1)) {
    fill<Key>(k_);
    fill<Value>(v_);
    std::iota(pageTable_.begin(), pageTable_.end(), 0);
    if (draw(random_, 0, 1) == 0) // pages in no order, or as they lie
      std::shuffle(pageTable_.begin(), pageTable_.end(), random_);
    for (std::size_t place = 1; place < pageTable_.size(); ++place)
      if (draw(random_, 0, 7) == 0) // one page at two places that follow each other
        pageTable_[place] = pageTable_[place - 1];
    args_.pageTable = pageTable_.data();
    args_.k = aligned(k_);
    const int shared = draw(random_, 0, 3); // K and V in one tensor
    if constexpr (kIsLatent<Config>) {      // K's columns behind V's in one tensor with these, or apart
      const bool areOne = kHasScales<Config> || shared < 2;
      kLayout_ = drawLayout(kHasScales<Config> ? Scaled::kBytes : kKeyDim);
      vLayout_ = areOne ? kLayout_ : drawLayout(kRopeDim + draw(random_, 0, 2) * kRowUnit<Config>);
      args_.v = areOne ? static_cast<const std::byte *>(args_.k) +
                             kValueDim * static_cast<int>(sizeof(Value)) + Scaled::kScaleBytes
                       : static_cast<const void *>(aligned(v_));
      if constexpr (kHasScales<Config>)
        for (int place = 0; place < kWholePages; ++place)
          Scaled::fill(random_, const_cast<std::byte *>(static_cast<const std::byte *>(args_.k)) +
                                    rowOf(kLayout_, place, 0));
    } else if (shared == 0) { // side by side in each token
      kLayout_ = vLayout_ = drawLayout(kKeyDim + kValueDim);
      args_.v = static_cast<const std::byte *>(args_.k) + kKeyDim * sizeof(Key);
    } else if (shared == 1 && kPage > 0 && kKeyDim == kValueDim) { // or page by page
      kLayout_ = drawLayout(kKeyDim);
      args_.v = static_cast<const std::byte *>(args_.k) + kLayout_.pageStride * sizeof(Key);
      kLayout_.pageStride *= 2;
      vLayout_ = kLayout_;
    } else {
      kLayout_ = drawLayout(kKeyDim + draw(random_, 0, 2) * kRowUnit<Config>);
      vLayout_ = drawLayout(kValueDim + draw(random_, 0, 2) * kRowUnit<Config>);
      args_.v = aligned(v_);
    }
    args_.kCache = placesOf(kLayout_);
    args_.vCache = placesOf(vLayout_);
    args_.qStride = kHeads * kKeyDim + draw(random_, 0, 3) * kRowUnit<Config>;
    args_.outStride = kHeads * kValueDim + draw(random_, 0, 3) * kRowUnit<Config>;
  }

  std::mt19937 &random() { return random_; }
  static constexpr int places() { return kWholePages; }

  void add(TestItem made) {
    made.item.queryBegin = queries_;
    made.item.partialBegin = draw(random_, 0, 1) == 0 ? -1 : partials_;
    if (made.item.partialBegin >= 0)
      partials_ += made.item.queryCount;
    queries_ += made.item.queryCount;
    int position = 0;
    for (abi::Run &run : made.runs) { // positions about those of queries, so that masks cut some
      run.position = kGivesWorth<Config> || kReadsLists
                         ? position
                         : run.position % 700; // a key has a position of its own
      position += run.tokens;
    }
    longest_ = std::max(longest_, position);
    items_.push_back(std::move(made));
  }

  /// Items of no tokens that end the list, as in a captured graph's launch.
  void addEnd() { add(TestItem{}); }

  /// What a driver makes of the cache: boxes of 16 and of 32 tokens, and whole tiles (abi::AttendArgs).
  void giveMaps() {
    args_.hasMaps = 1;
    const auto make = [&](const void *tensor, const abi::CacheLayout &cache, int columns, auto &boxes,
                          auto &maps) {
      makeBoxes({static_cast<const std::byte *>(tensor), cache, columns, static_cast<int>(sizeof(Key)), kPage,
                 kPlaces, kKvHeads, kIsLatent<Config>},
                boxes, maps);
    };
    make(args_.k, kLayout_, kIsLatent<Config> ? kValueDim : kKeyDim, kBoxes_, args_.kBoxes);
    make(args_.v, vLayout_, kIsLatent<Config> ? kRopeDim : kValueDim, vBoxes_, args_.vBoxes);
  }

  /// Launches `kernel(args, params)` by so many blocks and compares all that it has written. As on a device,
  /// there is work for each block: it reads its first item before it knows how many there are.
  template <class Kernel> void check(unsigned mostBlocks, unsigned sharedBytes, Kernel &&kernel) {
    prepare();
    const unsigned blocks = std::min(mostBlocks, static_cast<unsigned>(args_.itemCount * kUnitsOfItem));
    for (unsigned block = 0; block < blocks; ++block)
      ASSERT_EQ(runBlock({.threads = 32 * Config::kWarps,
                          .block = block,
                          .blocks = blocks,
                          .sharedBytes = sharedBytes,
                          .seed = seed_},
                         [&] { kernel(args_, params_); }),
                "")
          << "seed " << seed_ << " block " << block;
    for (const TestItem &made : items_)
      if (made.item.tokens > 0)
        compare(made);
    compareWorth();
    for (int query = 0; query < queries_; ++query)
      for (int i = kHeads * kValueDim; i < args_.outStride; ++i)
        ASSERT_EQ(aligned(out_)[static_cast<long long>(query) * args_.outStride + i], kUnwritten)
            << "between the rows, seed " << seed_;
  }

private:
  static constexpr std::uint16_t kUnwritten = 0x7fff;
  /// Elements of a token for a KV head, as it may be stored.
  static constexpr int kMostRow = std::max(kKeyDim + kValueDim + Scaled::kScaleBytes,
                                           std::max(kKeyDim, kValueDim) + 2 * kRowUnit<Config>);

  static abi::CachePlaces placesOf(const abi::CacheLayout &layout) {
    const auto unitsOf = [](long long stride) { return static_cast<unsigned>(stride / kRowUnit<Config>); };
    return {unitsOf(layout.pageStride), unitsOf(layout.tokenStride),
            kIsLatent<Config> ? 0u : unitsOf(layout.headStride)};
  }

  /// Of tokens with so many elements a head: the heads of a token side by side, or the tokens of a head in a
  /// page.
  abi::CacheLayout drawLayout(int row) {
    const long long page = std::max(kPage, 1) * kKvHeads * row;
    if (kPage > 1 && draw(random_, 0, 1) == 0)
      return {page, row, kPage * row};
    return {page, kKvHeads * row, row};
  }
  static const std::uint16_t *aligned(const std::vector<std::uint16_t> &values) {
    return reinterpret_cast<const std::uint16_t *>((reinterpret_cast<std::uintptr_t>(values.data()) + 15) /
                                                   16 * 16);
  }
  template <class Element> void fill(std::vector<std::uint16_t> &values, float unit = 1.f) {
    std::normal_distribution<float> normal;
    if constexpr (sizeof(Element) == 2) {
      for (std::uint16_t &value : values)
        value = static_cast<std::uint16_t>(ptx::pack2<Element>(unit * normal(random_), 0.f));
    } else {
      constexpr exec::Fp8Format kFormat = std::is_same_v<Element, e4m3> ? exec::kE4m3 : exec::kE5m2;
      for (std::uint16_t &value : values)
        value = static_cast<std::uint16_t>(exec::fp8FromFloat(normal(random_), kFormat) |
                                           exec::fp8FromFloat(normal(random_), kFormat) << 8);
    }
  }

  /// Of q's elements; a variant whose scale makes up for it may say another.
  static constexpr float queryUnit() {
    if constexpr (requires { Variant::kQueryUnit; })
      return Variant::kQueryUnit;
    else
      return 1.f;
  }

  void prepare() {
    const auto queries = static_cast<std::size_t>(queries_);
    caller_.resize(queries);
    std::iota(caller_.begin(), caller_.end(), 0);
    std::shuffle(caller_.begin(), caller_.end(), random_);
    queryPos_.resize(queries);
    for (int &position : queryPos_)
      position = draw(random_, 0, 700);
    q_.resize(queries * static_cast<std::size_t>(args_.qStride) + 8);
    fill<Query>(q_, queryUnit());
    out_.assign(queries * static_cast<std::size_t>(args_.outStride) + 8, kUnwritten);
    lse_.assign(queries * kHeads, 12345.f);
    partialOut_.assign(static_cast<std::size_t>(partials_) * kHeads * kValueDim + 8, kUnwritten);
    partialLse_.assign(static_cast<std::size_t>(partials_) * kHeads, 12345.f);
    if constexpr (kGivesWorth<Config>) {
      selected_.worthStride = longest_;
      worth_.assign(queries * static_cast<std::size_t>(Config::kWorthGroups * longest_), abi::kHiddenKey);
      mostWorth_.assign(worth_.size(), -kInfinity);
      selected_.worth = worth_.data();
      args_.selected = &selected_;
    }
    list_.clear();
    runs_.clear();
    for (TestItem &made : items_) {
      list_.push_back(made.item);
      list_.back().runBegin += static_cast<int>(runs_.size());
      runs_.insert(runs_.end(), made.runs.begin(), made.runs.end());
    }
    args_.runs = runs_.data();
    if constexpr (kReadsLists)
      lists_.make(
          random_, items_, caller_, [this](const ItemToken &token) { return slotOf(token); }, list_, args_);
    if constexpr (ItemLists<Config>::kAreGiven && sizeof(typename Config::Key) == 2)
      poisonUnread<kPage>(lists_.slots(), kPlaces, {args_.k, kLayout_, kValueDim},
                          {args_.v, vLayout_, kRopeDim});
    args_.items = list_.data();
    args_.itemCount = static_cast<int>(list_.size());
    args_.callerIndex = caller_.data();
    args_.queryPos = queryPos_.data();
    args_.q = aligned(q_);
    args_.out = const_cast<std::uint16_t *>(aligned(out_));
    args_.lse = lse_.data();
    args_.partialOut = const_cast<std::uint16_t *>(aligned(partialOut_));
    args_.partialLse = partialLse_.data();
  }

  /// Of a token, as abi::Selected::places has it.
  int slotOf(const ItemToken &token) const {
    const int page = std::max(kPage, 1);
    return kPage == 0 ? token.place
                      : pageTable_[static_cast<std::size_t>(token.place / page)] * page + token.place % page;
  }

  /// A column of V, of a row of a latent cache, as products take it; of another cache, an element of V.
  double valueOf(long long row, int column) const {
    if constexpr (kHasScales<Config>)
      return Scaled::value(static_cast<const std::byte *>(args_.k) + row, column);
    else
      return element<Value>(kIsLatent<Config> ? args_.k : args_.v, row + column);
  }
  /// One behind them, of the row of args_.v.
  double rotatedOf(long long row, int column) const {
    if constexpr (kHasScales<Config>)
      return Scaled::rotated(static_cast<const std::byte *>(args_.v) + row, column);
    else
      return element<Key>(args_.v, row + column);
  }

  template <class Element> double element(const void *values, long long at) const {
    if constexpr (sizeof(Element) == 1)
      return ptx::toFloat<Element>(static_cast<const std::uint8_t *>(values)[at]);
    else
      return ptx::toFloat<Element>(static_cast<const std::uint16_t *>(values)[at]);
  }

  /// Of a token of the cache for a KV head.
  long long rowOf(const abi::CacheLayout &cache, int place, int kvHead) const {
    if constexpr (kPage == 0)
      return place * cache.tokenStride + kvHead * cache.headStride;
    const int page = std::max(kPage, 1);
    return pageTable_[static_cast<std::size_t>(place / page)] * cache.pageStride +
           place % page * cache.tokenStride + kvHead * cache.headStride;
  }

  /// A token's row of K, as the hook makes it.
  std::vector<double> keyOf(const ItemToken &token, int kvHead) const {
    const long long begin = rowOf(kLayout_, token.place, kvHead);
    std::vector<double> row(static_cast<std::size_t>(kKeyDim));
    const int own = kIsLatent<Config> ? kValueDim : kKeyDim;
    for (int d = 0; d < own; ++d)
      row[static_cast<std::size_t>(d)] =
          kIsLatent<Config> ? valueOf(begin, d) : element<Key>(args_.k, begin + d);
    for (int d = own; d < kKeyDim; ++d)
      row[static_cast<std::size_t>(d)] = rotatedOf(rowOf(vLayout_, token.place, kvHead), d - own);
    if constexpr (requires { Variant::kKeyReadsRms; }) {
      const double squares = std::inner_product(row.begin(), row.end(), row.begin(), 0.0);
      const auto rms = static_cast<float>(std::sqrt(squares / kKeyDim));
      const auto at = [given = row](int d) { return static_cast<float>(given[static_cast<std::size_t>(d)]); };
      for (int d = 0; d < kKeyDim; ++d) {
        const float made = Variant::key(params_, at(d), at((d + kKeyDim / 2) % kKeyDim), at(d ^ 1), rms, d,
                                        token.position, kvHead);
        row[static_cast<std::size_t>(d)] =
            ptx::toFloat<Query>(static_cast<std::uint16_t>(ptx::pack2<Query>(made, 0.f)));
      }
    }
    return row;
  }

  std::vector<double> queryOf(int caller, int head) const {
    std::vector<double> row(kKeyDim);
    for (std::size_t d = 0; d < row.size(); ++d)
      row[d] = element<Query>(aligned(q_) + caller * args_.qStride + head * kKeyDim, static_cast<int>(d));
    return multiplied<Config>(std::move(row));
  }

  /// What hooks are told of a token beside its position and depth: its elements of arrays over tokens.
  auto elementsOf(const ItemToken &token, int kvHead) const {
    const long long slot =
        kPage == 0 ? token.place
                   : pageTable_[static_cast<std::size_t>(token.place / std::max(kPage, 1))] * kPage +
                         token.place % std::max(kPage, 1);
    std::array<int, 8> words{};
    Variant::forEachElement(params_, slot, kvHead, [&](int i, const void *element) {
      words[static_cast<std::size_t>(i)] = *static_cast<const int *>(element);
    });
    return Variant::token(words.data(), 1);
  }
  bool sees(const typename Variant::Row &row, const ItemToken &token, int kvHead) const {
    if constexpr (requires { typename Variant::Token; })
      return Variant::mask(params_, row, token.position, token.depth, kvHead, elementsOf(token, kvHead));
    else
      return Variant::mask(params_, row, token.position, token.depth, kvHead);
  }
  float scoreOf(const typename Variant::Row &row, float s, const ItemToken &token, int kvHead) const {
    if constexpr (requires { typename Variant::Token; })
      return Variant::score(params_, row, s, token.position, token.depth, kvHead, elementsOf(token, kvHead));
    else
      return Variant::score(params_, row, s, token.position, token.depth, kvHead);
  }
  double valueFactorOf(const ItemToken &token, int kvHead) const {
    if constexpr (!HasValueFactor<Variant>)
      return 1;
    else if constexpr (requires { typename Variant::Token; })
      return Variant::valueFactor(params_, token.position, token.depth, kvHead, elementsOf(token, kvHead));
    else
      return Variant::valueFactor(params_, token.position, token.depth, kvHead);
  }

  void compare(const TestItem &made) {
    const std::vector<ItemToken> tokens = made.tokens();
    for (int query = 0; query < made.item.queryCount; ++query) {
      const int at = made.item.queryBegin + query, caller = caller_[static_cast<std::size_t>(at)];
      for (int head = 0; head < kHeads; ++head) {
        const int kvHead = kvHeadForHooks<Config>(head / Config::kRatio),
                  qPos = queryPos_[static_cast<std::size_t>(at)];
        const typename Variant::Row row = Variant::row(params_, qPos, head, kvHead, caller);
        const std::vector<double> q = queryOf(caller, head);
        std::vector<double> scores, factors;
        std::vector<long long> rows;
        for (std::size_t t = 0; t < tokens.size(); ++t) {
          const ItemToken &token = tokens[t];
          if constexpr (kReadsLists)
            if (!lists_.reads(static_cast<int>(&made - items_.data()), caller, query, head, t))
              continue;
          if (query < token.queryBegin || query >= token.queryEnd)
            continue;
          if constexpr (Variant::kHasMask)
            if (!sees(row, token, kvHead))
              continue;
          rows.push_back(rowOf(kIsLatent<Config> ? kLayout_ : vLayout_, token.place, kvHead));
          factors.push_back(valueFactorOf(token, kvHead));
          const std::vector<double> key = keyOf(token, kvHead);
          scores.push_back(std::inner_product(key.begin(), key.end(), q.begin(), 0.0) * Variant::kScale);
          if constexpr (Variant::kHasScore)
            scores.back() = scoreOf(row, static_cast<float>(scores.back()), token, kvHead);
          if constexpr (kGivesWorth<Config>) {
            const auto group = static_cast<std::size_t>(caller * Config::kWorthGroups +
                                                        head * Config::kWorthGroups / kHeads);
            double &most = mostWorth_[group * static_cast<std::size_t>(longest_) +
                                      static_cast<std::size_t>(token.position)];
            most = std::max(most, scores.back());
          }
        }
        const bool isPartial = made.item.partialBegin >= 0;
        const long long place =
            (isPartial ? static_cast<long long>(made.item.partialBegin + query) : caller) * kHeads + head;
        double sink = -kInfinity;
        if constexpr (HasSink<Variant>)
          if (!isPartial) // merges join those of partials
            sink = Variant::sink(params_, head, kvHead);
        const auto written = [&](double x, int d) {
          if constexpr (HasOutput<Variant>)
            if (!isPartial) // likewise
              return static_cast<double>(
                  Variant::output(params_, static_cast<float>(x), d, qPos, head, kvHead, caller));
          return x;
        };
        compareRow(scores, rows, factors, isPartial, place, sink, written);
        if (::testing::Test::HasFailure()) {
          ADD_FAILURE() << "seed " << seed_ << " query " << query << " of " << made.item.queryCount
                        << " head " << head << " tokens " << rows.size() << " of " << made.item.tokens;
          return;
        }
      }
    }
  }

  /// A score, read back from its key, is what it should be; what nobody sees has no key.
  void compareWorth() const {
    for (std::size_t at = 0; at < worth_.size(); ++at) {
      const unsigned key = worth_[at];
      if (mostWorth_[at] == -kInfinity) {
        ASSERT_EQ(key, abi::kHiddenKey) << "seed " << seed_ << " at " << at;
      } else {
        const unsigned bits = (key >> 31) != 0 ? key & 0x7fffffffu : ~key;
        ASSERT_NEAR(__uint_as_float(bits), mostWorth_[at], 2e-4) << "seed " << seed_ << " at " << at;
      }
    }
  }

  template <class Written>
  void compareRow(const std::vector<double> &scores, const std::vector<long long> &rows,
                  const std::vector<double> &factors, bool isPartial, long long place, double sink,
                  const Written &written) const {
    const bool isEmpty = scores.empty() && sink == -kInfinity;
    double top = isEmpty ? 0 : sink;
    for (double score : scores)
      top = std::max(top, score);
    double sum = std::exp(sink - top);
    std::vector<double> weights;
    for (double score : scores) {
      weights.push_back(Variant::kSigmoid ? 1 / (1 + std::exp(-score)) : std::exp(score - top));
      sum += weights.back();
    }
    constexpr bool kIsF16 = !std::is_same_v<Value, bf16> && std::is_same_v<Partial<Config>, f16>;
    constexpr double kRounding = kIsF16 ? 1.0 / 1024 : 1.0 / 128;
    constexpr double kScoreError = 2e-5; // of sums in float32, and so of weights
    const std::uint16_t *results =
        isPartial ? aligned(partialOut_) + place * kValueDim
                  : aligned(out_) + place / kHeads * args_.outStride + place % kHeads * kValueDim;
    const WeightRounding ofWeights = WeightRounding::of<Config>(weights);
    for (int d = 0; d < kValueDim; ++d) {
      double want = 0, size = 0, off = 0;
      for (std::size_t t = 0; t < rows.size(); ++t) {
        const double value = valueOf(rows[t], d), part = weights[t] * factors[t] * value;
        want += part;
        size += std::abs(part);
        off += ofWeights.relative * std::abs(part) + ofWeights.absolute * std::abs(value);
      }
      const double by = Variant::kSigmoid || isEmpty ? 1 : sum;
      const double got = isPartial ? ptx::toFloat<Partial<Config>>(results[d])
                                   : ptx::toFloat<typename Config::Output>(results[d]);
      const double is = written(want / by, d), added = std::abs(is - want / by);
      ASSERT_NEAR(got, is, kRounding * (size / by + added) + (off + kScoreError * size) / by + 1e-6)
          << "column " << d;
    }
    if (!Variant::kSigmoid) {
      const float lse = (isPartial ? partialLse_ : lse_)[static_cast<std::size_t>(place)];
      if (isEmpty) {
        ASSERT_EQ(lse, -kInfinity);
      } else {
        ASSERT_NEAR(lse, top + std::log(sum), 1e-4);
      }
    }
  }

  const unsigned seed_;
  const typename Variant::Params params_;
  std::mt19937 random_;
  std::vector<std::uint16_t> q_, k_, v_, out_, partialOut_;
  std::vector<float> lse_, partialLse_;
  std::vector<int> pageTable_, caller_, queryPos_;
  std::vector<TestItem> items_;
  std::vector<abi::Item> list_;
  std::vector<abi::Run> runs_;
  std::array<CopyBox, 3> kBoxes_, vBoxes_;
  abi::CacheLayout kLayout_{}, vLayout_{};
  abi::AttendArgs args_{};
  abi::Selected selected_{};
  std::vector<unsigned> worth_;
  ItemLists<Config> lists_;
  std::vector<double> mostWorth_;
  int longest_ = 0;
  int queries_ = 0, partials_ = 0;
};

} // namespace deft::test
