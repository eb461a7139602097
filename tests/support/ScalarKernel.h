#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/exec/Half.h"
#include "runtime/exec/cpu/CpuKernel.h"

#include <algorithm>
#include <cmath>
#include <limits>

/// A CPU kernel in plain C++, to run plans without a compiler. Softmax attention without mask and score, in
/// bf16, in blocks like emitted kernels; keeps scores if `Selects` is set.
namespace deft::test {

template <int QueryHeads, int KvHeads, int HeadDim, bool Selects = false> class ScalarKernel {
public:
  static spec::Variant variant() {
    spec::Variant variant;
    variant.name = "scalar";
    variant.queryHeads = QueryHeads;
    variant.kvHeads = KvHeads;
    variant.tensors = spec::Tensors::alike(HeadDim);
    variant.withLse = true;
    variant.scale = kScale;
    if (Selects) {
      variant.select.emplace();
      variant.select->budget.values = {32};
    }
    return variant;
  }

  static exec::CpuKernel kernel() {
    static const abi::CpuKernel table = make();
    return {&table, [](const abi::CpuKernel *) {}};
  }

private:
  static constexpr double kScale = 0.25;
  static constexpr int kBlock = 24;

  static float value(const void *values, long long at) {
    return exec::floatFromBf16(static_cast<const std::uint16_t *>(values)[at]);
  }

  static void pack(const abi::CpuPackCall *call) {
    float *rows = static_cast<float *>(call->packed) + static_cast<long long>(call->rowBegin) * HeadDim;
    for (int i = 0; i < call->rows * HeadDim; ++i)
      rows[i] = value(call->q, i) * static_cast<float>(kScale);
  }

  static void attend(const abi::CpuAttendCall *call) {
    for (int row = 0; row < call->rows; ++row) {
      const float *q = static_cast<const float *>(call->packed) + static_cast<long long>(row) * HeadDim;
      float scores[kBlock];
      float most = call->m[row];
      for (int t = 0; t < call->tokens; ++t) {
        scores[t] = -std::numeric_limits<float>::infinity();
        if (call->cut && (row < call->rowLow[t] || row >= call->rowHigh[t]))
          continue;
        scores[t] = 0;
        for (int d = 0; d < HeadDim; ++d)
          scores[t] += q[d] * value(call->k, call->keyOffsets[t] + d);
        most = std::max(most, scores[t]);
      }
      if (Selects && call->scores)
        for (int t = 0; t < call->tokens; ++t)
          call->scores[row * kBlock + t] = scores[t];
      if (std::isinf(most))
        continue; // no visible token so far
      float *acc = call->acc + static_cast<long long>(row) * HeadDim;
      const float rescale = std::exp(call->m[row] - most);
      call->l[row] *= rescale;
      for (int d = 0; d < HeadDim; ++d)
        acc[d] *= rescale;
      for (int t = 0; t < call->tokens; ++t) {
        const float weight = std::exp(scores[t] - most);
        if (weight == 0)
          continue; // slots without a token hold NaN
        call->l[row] += weight;
        for (int d = 0; d < HeadDim; ++d)
          acc[d] += weight * value(call->v, call->valueOffsets[t] + d);
      }
      call->m[row] = most;
    }
  }

  static int tile(const abi::CpuTileCall *) { return abi::kCpuTileAny | abi::kCpuTileAll; }

  template <typename Store> static void finishRows(const abi::CpuFinishCall *call, Store store) {
    for (int row = 0; row < call->rows; ++row) {
      const bool isEmpty = std::isinf(call->m[row]);
      for (int d = 0; d < HeadDim; ++d) {
        const long long at = static_cast<long long>(row) * HeadDim + d;
        store(at, isEmpty ? 0 : call->acc[at] / call->l[row]);
      }
      if (call->lse)
        call->lse[row] = isEmpty ? call->m[row] : call->m[row] + std::log(call->l[row]);
    }
  }
  static void finish(const abi::CpuFinishCall *call) {
    finishRows(call, [&](long long at, float x) {
      static_cast<std::uint16_t *>(call->out)[at] = exec::bf16FromFloat(x);
    });
  }
  static void finishPartial(const abi::CpuFinishCall *call) {
    finishRows(call, [&](long long at, float x) { static_cast<float *>(call->out)[at] = x; });
  }

  static void merge(const abi::CpuMergeCall *call) {
    for (int row = 0; row < call->rows; ++row) {
      const auto lseOf = [&](int i) {
        return call->partialLse[static_cast<long long>(call->slots[i]) * QueryHeads + row];
      };
      float most = -std::numeric_limits<float>::infinity();
      for (int i = 0; i < call->slotCount; ++i)
        most = std::max(most, lseOf(i));
      float sum = 0, out[HeadDim] = {};
      for (int i = 0; i < call->slotCount && !std::isinf(most); ++i) {
        const float weight = std::exp(lseOf(i) - most);
        const float *partial =
            call->partialOut + (static_cast<long long>(call->slots[i]) * QueryHeads + row) * HeadDim;
        sum += weight;
        for (int d = 0; d < HeadDim; ++d)
          out[d] += weight * partial[d];
      }
      for (int d = 0; d < HeadDim; ++d)
        static_cast<std::uint16_t *>(call->out)[static_cast<long long>(row) * HeadDim + d] =
            exec::bf16FromFloat(sum > 0 ? out[d] / sum : 0);
      if (call->lse)
        call->lse[row] = sum > 0 ? most + std::log(sum) : most;
    }
  }

  static abi::CpuKernel make() {
    abi::CpuKernel table{};
    table.version = abi::kCpuKernelVersion;
    table.tableBytes = sizeof(abi::CpuKernel);
    table.queryHeads = QueryHeads;
    table.kvHeads = KvHeads;
    table.keyDim = table.valueDim = HeadDim;
    table.queryDtype = table.keyDtype = table.valueDtype = table.outputDtype =
        static_cast<int>(spec::DType::BF16);
    table.blockTokens = kBlock;
    table.groupRows = 1;
    table.keepsScores = Selects ? 1 : 0;
    table.packedGroupBytes = HeadDim * static_cast<int>(sizeof(float));
    table.pack = pack;
    table.attend = attend;
    table.tile = tile;
    table.finish = finish;
    table.finishPartial = finishPartial;
    table.merge = merge;
    return table;
  }
};

} // namespace deft::test
