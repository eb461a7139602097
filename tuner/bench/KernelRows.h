#pragma once

#include <span>
#include <string>
#include <string_view>

/// The trees that a benchmark runs, as data. Those with a peer are the decode steps on which published
/// kernels were measured (recordedCard(): one NVIDIA H200, driver 580.159, CUDA 13.0, f16, head dim 128, one
/// layer, graph replay with a cold L2, median of 41), and what the best of them took.
namespace deft::bench {

struct KernelRow {
  std::string_view name;
  std::string_view workload;  ///< whose tree it is, as workload::make takes it
  std::string_view attention; ///< what is computed: its name in a spec
  double floorUs = 0; ///< the larger of a cold read of the unique cache and the flops at the matrix rate
  double peerUs = 0;  ///< the best published kernel; 0: none was measured
  std::string_view peer = {};
  double flatUs = 0;              ///< query by query: what an engine that knows no tree runs
  std::string_view treeFile = {}; ///< in place of a workload
};

/// FastTree's benchmark: fifteen trees at heads 32/8, 32/32 and 16/1.
std::span<const KernelRow> fasttreeRows();
/// DeFT's workloads: few-shot prompts, speculative token trees, reasoning.
std::span<const KernelRow> deftRows();
/// No sharing at all: deftc should not lose there.
std::span<const KernelRow> flatRows();
/// Other heads, head dims and trees, against the floor alone.
std::span<const KernelRow> otherRows();
/// Windows over long contexts, against the floor alone.
std::span<const KernelRow> windowRows();
/// Causal stretches of new tokens: prompts, appends and batches with both, against the floor alone.
std::span<const KernelRow> raggedRows();
/// Latent caches, whose values are in their keys, against the floor alone.
std::span<const KernelRow> latentRows();
/// Trees on which what masks and scores cost is measured, with the plain attention.
std::span<const KernelRow> variantRows();

/// What stands behind the plain attention's name in variantRows(): "h32_8_softcap".
std::span<const std::string_view> variantSuffixes();

/// The name of an attention where its cache has pages of 16 tokens.
inline std::string withPagesOf16(std::string_view attention) { return std::string(attention) + "_p16"; }

} // namespace deft::bench
