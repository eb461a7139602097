#pragma once

#include <string_view>

namespace deft::bench {

/// CUDA source of the kernels that measure a GPU's limits; its entries are the names below. It includes the
/// templates' instruction wrappers, so NVRTC compiles it like any kernel.
extern const std::string_view kProbeSource;

constexpr const char *kProbeEmpty = "probe_empty";   ///< ()
constexpr const char *kProbeFill = "probe_fill";     ///< (buffer, bytes): random bits
constexpr const char *kProbeLoads = "probe_loads";   ///< (buffer, bytes, sink): 16-byte loads
constexpr const char *kProbeBulk = "probe_bulk";     ///< (buffer, bytes, chunk, stages): bulk copies
constexpr const char *kProbeMatrix = "probe_matrix"; ///< (sink, rounds, isBf16): products, no memory

constexpr int kProbeThreads = 512; ///< for all except the next two
constexpr int kProbeBulkThreads = 32;
constexpr int kProbeMatrixThreads = 384;
/// Dynamic shared memory. probe_bulk: a ring and a barrier for each stage. probe_matrix: an operand.
constexpr int kProbeRingBytes = 192 * 1024;
constexpr int kProbeMostStages = 192;
constexpr int kProbeBulkSmem = kProbeRingBytes + 8 * kProbeMostStages;
constexpr int kProbeMatrixSmem = 32 * 1024 + 1024;
/// Multiply-adds of a warp in a round of probe_matrix, the same with wgmma and mma.sync.
constexpr double kProbeMatrixWarpFlops = 2.0 * 16 * 128 * 16 * 4;

} // namespace deft::bench
