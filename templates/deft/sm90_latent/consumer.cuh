#pragma once

#include "deft/ptx/forget.cuh"
#include "deft/ptx/ldmatrix.cuh"
#include "deft/ptx/use_never.cuh"
#include "deft/ptx/wgmma.cuh"
#include "deft/sm90_latent/barriers.cuh"
#include "deft/sm90_latent/computing_warp.cuh"
#include "deft/sm90_latent/result_rows.cuh"
#include "deft/sm90_latent/row_weights.cuh"

/// The computing warpgroups. For its own tiles a warpgroup computes q . k for all rows, and the weights. For
/// all tiles it adds p . v for its half of V's columns. Its own weights are in registers; the other warpgroup
/// leaves its weights in the tile. While one makes weights, the other multiplies.
namespace deft::sm90_latent {

template <class Config, class Variant> class Consumer : public ComputingWarp<Config, Variant> {
  using Computing = ComputingWarp<Config, Variant>;
  using Computing::args_, Computing::ring_, Computing::odd_, Computing::group_, Computing::warp_;
  using Computing::arrive, Computing::awaitParts, Computing::descriptor;
  using Computing::head, Computing::lane_, Computing::rows_, Computing::seenOf;
  using typename Computing::L;
  using typename Computing::Params;
  using typename Computing::Rows;
  using typename Computing::Seen;
  using Weights = RowWeights<Config, Variant>;
  using Results = ResultRows<Config, Variant>;
  using Out = typename Results::Out;
  using Key = typename Config::Key;
  using Value = typename Config::Value;
  using Scores = Fragment<8>;                          ///< a warp's rows by a tile's tokens
  static constexpr int kGroups = Config::kTileKv / 16; ///< groups of 16 tokens

public:
  __device__ __forceinline__ Consumer(const abi::AttendArgs &args, const Params &params,
                                      const Ring<Config> &ring, int odd)
      : Computing(args, params, ring, odd) {}

  /// Attends to the unit's tiles from step `begin` on. Returns the step after the last.
  __device__ __forceinline__ int attend(int begin) {
    ptx::fenceAsyncProxy();         // cp.async has written the queries
    bool hasBefore = !isOwn(begin); // a tile of the other warpgroup
    int step = begin + (hasBefore ? 1 : 0);
    if (step >= endStep())
      arrive(ring_.queriesEmpty());
    for (; step < endStep(); step += kComputingGroups) {
      attendOwn(step, hasBefore, step + kComputingGroups >= endStep());
      hasBefore = true;
    }
    const int end = endStep();
    if (!isOwn(end - 1))
      attendOther(end - 1);
    writeResults();
    return end;
  }

private:
  __device__ __forceinline__ bool isOwn(int step) const { return step % kComputingGroups == group_; }
  /// The step after the unit's last tile. It is read again each time, to save a register during the products.
  __device__ __forceinline__ int endStep() const { return head().endStep; }

  /// A tile whose weights this warpgroup makes, and the tile before it in the same unit. Products with the
  /// other warpgroup's weights come first: its slot is free sooner, and our products follow without a gap.
  __device__ __forceinline__ void attendOwn(int step, bool hasBefore, bool isLast) {
    const bool takesOther = hasBefore && takeOther(step - 1);
    if (takesOther) {
      meetOther(step - 1);
    } else { // weights of 0, so both cases run the same code
      if (hasBefore)
        arrive(ring_.empty(step - 1, kOther));
      if (!awaitTile(step)) {
        passOwn(step, isLast);
        return;
      }
      clearOther();
    }
    startValues(takesOther ? step - 1 : step, other_);
    if (takesOther && !awaitTile(step)) {
      finishOther(step - 1);
      passOwn(step, isLast);
      return;
    }
    Scores s;
    startKeys(step, s);
    const TileFacts &facts = ring_.slot(step).facts;
    const Seen seen = seenOf(facts.head, facts.bounds); // overlaps the products
    ptx::wgmmaWait<1>();
    ptx::wgmmaPin(out_.tile);
    holdOther();
    if (takesOther)
      arrive(ring_.empty(step - 1, kOther));
    ptx::wgmmaWait<0>();
    ptx::wgmmaPin(s.tile);
    if (isLast)
      arrive(ring_.queriesEmpty());
    unsigned p[kGroups][4];
    makeWeights(step, seen, s, p);
    startValues(step, p);
    finishProducts();
    arrive(ring_.empty(step, kOwn));
  }

  /// Waits for a tile of this warpgroup. False: no query sees any of it, so it has not been copied.
  __device__ __forceinline__ bool awaitTile(int step) const {
    awaitParts(step);
    return show(step);
  }
  /// The same for a tile that has landed; makes data copied by cp.async visible to wgmma.
  __device__ __forceinline__ bool show(int step) const {
    const TileFacts::Head head = ring_.slot(step).facts.head;
    if (head.isGathered)
      ptx::fenceAsyncProxy();
    return head.viewed.anyone != sm90::kNobody;
  }
  __device__ __forceinline__ void passOwn(int step, bool isLast) const {
    if (isLast)
      arrive(ring_.queriesEmpty());
    arrive(ring_.weights(step));
    arrive(ring_.empty(step, kOwn));
  }

  /// Turns a tile's products into weights for both warpgroups. It rescales the sums if references have
  /// changed; no products are in flight.
  __device__ __forceinline__ void makeWeights(int step, const Seen &seen, Scores &s,
                                              unsigned (&p)[kGroups][4]) {
    const TokenRecords tokens = ring_.slot(step).records();
    float common[2] = {}, factor[2];
    score(tokens, seen, s, common);
    const bool grows = weights_.weighTile(s, common, factor);
    rows_.multiplyByFactors(tokens, 0, s);
#pragma unroll
    for (int g = 0; g < kGroups; ++g)
      packOperand<Value>(s.template part<2>(2 * g), p[g]);
    leaveWeights(step, p);
    if (grows)
      out_.scaleRows(factor);
  }

  __device__ __forceinline__ void finishProducts() {
    ptx::wgmmaWait<0>();
    ptx::wgmmaPin(out_.tile);
  }

  __device__ __forceinline__ void startKeys(int step, Scores &s) const {
    const unsigned long long queries = descriptor(ring_.queries(), 16),
                             keys = descriptor(ring_.tile(step), 16);
    ptx::wgmmaFence();
#pragma unroll
    for (int k = 0; k < Config::kKeyDim / 16; ++k) {
      const int at = (k / 4 * kBlockBytes + k % 4 * 32) / 16; // in steps of 16 columns
      ptx::WgmmaOfShared<Key>::step(s.tile, queries + at, keys + at, k > 0);
    }
    ptx::wgmmaCommit();
  }

  /// out += p . v for the tile and the warpgroup's half of V's columns.
  __device__ __forceinline__ void startValues(int step, const unsigned (&p)[kGroups][4]) {
    const unsigned long long values =
        descriptor(ring_.tile(step) + group_ * L::kHalfBlocks * kBlockBytes, kBlockBytes);
    ptx::wgmmaFence();
#pragma unroll
    for (int g = 0; g < kGroups; ++g)
      multiplyColumns<0>(p[g], values + g * 16 * 128 / 16);
    ptx::wgmmaCommit();
  }

  /// For 16 tokens and the columns from kFirst on, in the widest instructions that fit.
  template <int kFirst>
  __device__ __forceinline__ void multiplyColumns(const unsigned (&p)[4], unsigned long long values) {
    constexpr int kColumns = Config::kValueDim / kComputingGroups;
    if constexpr (kFirst < kColumns) {
      constexpr int kWidth = kColumns - kFirst >= 128 ? 128 : 64;
      ptx::Wgmma<Value, kWidth>::template step<true>(out_.template part<kWidth / 8>(kFirst / 8).tile, p,
                                                     values + kFirst / 64 * kBlockBytes / 16, true);
      multiplyColumns<kFirst + kWidth>(p, values);
    }
  }

  /// Turns products into final scores, except that `common` of the row must still be added.
  __device__ __forceinline__ void score(const TokenRecords &tokens, const Seen &seen, Scores &s,
                                        float (&common)[2]) const {
    const bool isScored = Rows::kRises && seen.isRising;
    if constexpr (Rows::kRises) {
      if (isScored)
        rows_.scoreRising(tokens, s, common);
    }
    if (!isScored) {
#pragma unroll
      for (int g = 0; g < kGroups; ++g)
        rows_.template score<1>(tokens, g, s.template part<2>(2 * g));
    }
    if (seen.isCut) {
#pragma unroll
      for (int g = 0; g < kGroups; ++g)
        rows_.hide(tokens, g, s.template part<2>(2 * g));
    }
  }

  // --- weights for the other warpgroup, in the last block of the tile -------------------------------

  /// Runs once the whole warpgroup has read that block.
  __device__ __forceinline__ void leaveWeights(int step, const unsigned (&p)[kGroups][4]) const {
    meetGroup(group_);
    char *const block = ring_.shared + (ring_.tile(step) - ring_.base) + L::kRopeOffset;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = warp_ * 16 + fragmentRow(lane_, r);
#pragma unroll
      for (int n = 0; n < 2 * kGroups; ++n)
        *reinterpret_cast<unsigned *>(block + L::offset(row, n) + lane_ % 4 * 4) = p[n / 2][n % 2 * 2 + r];
      if (isFirstOfRow(lane_))
        ring_.references(step)[row] = weights_.reference(r);
    }
    ptx::fenceAsyncProxy(); // the copy engine writes to this block next
    arrive(ring_.weights(step));
  }

  /// A tile of the other warpgroup.
  __device__ __forceinline__ void attendOther(int step) {
    if (takeOther(step)) {
      meetOther(step);
      startValues(step, other_);
      finishOther(step);
    } else {
      arrive(ring_.empty(step, kOther));
    }
  }

  /// Loads its weights into registers. False: no query sees any of the tile, so there are no weights.
  __device__ __forceinline__ bool takeOther(int step) {
    ptx::mbarrierWait(ring_.full(step, kOther), Ring<Config>::parity(step));
    ptx::mbarrierWait(ring_.weights(step), Ring<Config>::parity(step));
#pragma unroll
    for (int g = 0; g < kGroups; ++g)
      ptx::ldmatrix4(other_[g], ring_.tile(step) + L::kRopeOffset +
                                    L::offset(warp_ * 16 + lane_ % 16, 2 * g + lane_ / 16));
    return show(step);
  }
  __device__ __forceinline__ void clearOther() {
#pragma unroll
    for (int g = 0; g < kGroups; ++g)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        other_[g][i] = 0u;
  }

  /// Converts its weights to our references. No products are in flight.
  __device__ __forceinline__ void meetOther(int step) {
    if constexpr (!Variant::kSigmoid) {
      float references[2], factor[2];
#pragma unroll
      for (int r = 0; r < 2; ++r)
        references[r] = ring_.references(step)[warp_ * 16 + fragmentRow(lane_, r)];
      if (weights_.meet(references, factor))
        out_.scaleRows(factor);
#pragma unroll
      for (int r = 0; r < 2; ++r)
        factor[r] = weights_.factorOf(r, references[r]);
      if (__any_sync(~0u, factor[0] != 1.f || factor[1] != 1.f))
        scaleOther(factor);
    }
  }

  /// Without this, ptxas reuses the weights' registers during the products (docs/kernels.md#ptxas).
  __device__ __forceinline__ void holdOther() const { ptx::useNever(other_, ring_.base); }
  __device__ __forceinline__ void finishOther(int step) {
    finishProducts();
    holdOther();
    arrive(ring_.empty(step, kOther));
  }

  __device__ __forceinline__ void scaleOther(const float (&factor)[2]) {
#pragma unroll
    for (int g = 0; g < kGroups; ++g)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 pair = ptx::unpack2<Value>(other_[g][i]);
        other_[g][i] = ptx::pack2<Value>(pair.x * factor[i % 2], pair.y * factor[i % 2]);
      }
  }

  __device__ __forceinline__ void writeResults() {
    float scale[2] = {1.f, 1.f}, lse[2] = {};
    if constexpr (!Variant::kSigmoid) {
      weights_.finish();
      RowShare *const own = ring_.shares(odd_, group_);
      const RowShare *const other = ring_.shares(odd_, 1 - group_);
#pragma unroll
      for (int r = 0; r < 2; ++r)
        if (isFirstOfRow(lane_))
          own[warp_ * 16 + fragmentRow(lane_, r)] = {weights_.reference(r), weights_.sum(r)};
      meetBoth();
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const RowShare given = other[warp_ * 16 + fragmentRow(lane_, r)];
        const typename Weights::Total total = weights_.with(r, given.reference, given.sum);
        scale[r] = total.scale;
        lse[r] = total.lse;
      }
    }
    // Computed again from the unit, so that fewer registers are held during the products.
    const UnitHead<Config> &unit = head();
    const abi::Item item = unit.item;
    int firstRow = Computing::firstRow();
    ptx::forgetHere(firstRow);
    const Rows rows(args_, rows_.params(), item, unit.heads, firstRow);
    if (!rows.isReal(firstRow)) // the warp has no real rows
      return;
    int caller[2];
#pragma unroll
    for (int r = 0; r < 2; ++r)
      caller[r] = unit.callerIndex[rows.clamped(rows.row(r))];
    const Results results(args_, item, rows, caller, group_, scale, lse);
    results.write(out_);
    results.writeLse();
  }

  Weights weights_;
  Out out_{};
  unsigned other_[kGroups][4] = {}; ///< the other warpgroup's weights
};

} // namespace deft::sm90_latent
