#pragma once

#include <span>
#include <string_view>

/// The decode steps on which published kernels were measured (one NVIDIA H200, driver 580.159, CUDA 13.0,
/// f16, head dim 128, one layer, graph replay with a cold L2, median of 41), and what the best of them took.
namespace deft::bench {

struct KernelRow {
  std::string_view name;
  std::string_view workload; ///< whose tree it is, as workload::make takes it
  int queryHeads = 0, kvHeads = 0;
  double floorUs = 0; ///< the larger of a cold read of the unique cache and the flops at the matrix rate
  double peerUs = 0;  ///< the best published kernel
  std::string_view peer;
  double flatUs = 0; ///< query by query: what an engine that knows no tree runs
};

/// FastTree's benchmark: fifteen trees at heads 32/8, 32/32 and 16/1.
std::span<const KernelRow> fasttreeRows();
/// DeFT's workloads: few-shot prompts, speculative token trees, reasoning.
std::span<const KernelRow> deftRows();
/// No sharing at all: nobody may lose there.
std::span<const KernelRow> flatRows();

} // namespace deft::bench
