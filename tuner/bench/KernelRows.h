#pragma once

#include <span>
#include <string>
#include <string_view>

/// The trees of a benchmark, as data. Rows with a peer are decode steps on which published kernels were
/// measured (recordedCard(): one NVIDIA H200, driver 580.159, CUDA 13.0, f16, head dim 128, one layer, graph
/// replay with a cold L2, median of 41), with the time of the best peer.
namespace deft::bench {

struct KernelRow {
  std::string_view name;
  std::string_view workload;  ///< that makes its tree, in the syntax of workload::make
  std::string_view attention; ///< the attention's name in a spec
  double floorUs = 0; ///< the larger of a cold read of the unique cache and the flops at the peak matrix rate
  double peerUs = 0;  ///< the best published kernel; 0: not measured
  std::string_view peer = {};
  double flatUs = 0;              ///< query by query, as in an engine without trees
  std::string_view treeFile = {}; ///< instead of a workload
};

/// FastTree's benchmark: fifteen trees at heads 32/8, 32/32 and 16/1.
std::span<const KernelRow> fasttreeRows();
/// DeFT's workloads: few-shot prompts, speculative token trees, reasoning.
std::span<const KernelRow> deftRows();
/// No sharing at all: deftc should be as fast as the peers there.
std::span<const KernelRow> flatRows();
/// Other heads, head dims and trees, compared only with the floor.
std::span<const KernelRow> otherRows();
/// Windows over long contexts, compared only with the floor.
std::span<const KernelRow> windowRows();
/// Causal stretches of new tokens: prompts, appends and batches with both, compared only with the floor.
std::span<const KernelRow> raggedRows();
/// Latent caches, where values are part of keys, compared only with the floor.
std::span<const KernelRow> latentRows();
/// Trees to measure the cost of masks and scores, with the plain attention.
std::span<const KernelRow> variantRows();

/// The suffixes to the plain attention's name in variantRows(): "h32_8_softcap".
std::span<const std::string_view> variantSuffixes();

/// The name of an attention whose cache has pages of 16 tokens.
inline std::string withPagesOf16(std::string_view attention) { return std::string(attention) + "_p16"; }

} // namespace deft::bench
