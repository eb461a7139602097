#include "compiler/kernels/Sm80.h"

#include "compiler/kernels/Occupancy.h"

#include <algorithm>
#include <cmath>

/// mma.sync on every architecture: warps that load what they compute. See templates/deft/attend_sm80.cuh.
namespace deft::kernels {
namespace {

using Site = PhaseSite;

/// Addresses, loop state and the row facts of the hooks, beside the fragments; from resource reports
/// of the shipped specs.
constexpr int kOtherRegisters = 96;

std::string number(int value) { return std::to_string(value); }

int rowWarps(const Site &site) { return site.phase.tileQ / 16; }
int tokenWarps(const Site &site) { return site.phase.warps / rowWarps(site); }

int registersLeft(const Site &site) {
  return std::min(site.target.registersPerThread, site.target.registersPerSm / (32 * site.phase.warps));
}

constexpr PhaseRule kRules[] = {
    {"warps share a tile", [](const Site &site) { return site.phase.warps % rowWarps(site) == 0; },
     [](const Site &site) {
       return "warps is " + number(site.phase.warps) + ", not a multiple of the " + number(rowWarps(site)) +
              " that a tile of " + number(site.phase.tileQ) + " rows takes";
     },
     nullptr},
    {"warps share a tile", [](const Site &site) { return site.phase.tileKv % (16 * tokenWarps(site)) == 0; },
     [](const Site &site) {
       return "tile_kv is " + number(site.phase.tileKv) + ", not a multiple of the " +
              number(16 * tokenWarps(site)) + " tokens that its " + number(tokenWarps(site)) +
              " token warps take at a time";
     },
     nullptr},
    {"threads", [](const Site &site) { return site.phase.tileKv <= 32 * site.phase.warps; },
     [](const Site &site) {
       return "tile_kv is " + number(site.phase.tileKv) + ", more than the block's " +
              number(32 * site.phase.warps) + " threads";
     },
     nullptr},
    {"registers",
     [](const Site &site) { return estimateRegisters(site.shape, site.phase) <= registersLeft(site); },
     [](const Site &site) {
       return "a thread needs about " + number(estimateRegisters(site.shape, site.phase)) +
              " registers; a block of " + number(site.phase.warps) + " warps leaves " +
              number(registersLeft(site));
     },
     [](const Site &) -> std::string { return "lower tile_kv or tile_q"; }},
};

/// Twin: templates/deft/sm80/shared_layout.cuh.
int bytesOf(int headDim, const PhaseConfig &phase) {
  // A row is swizzled where it fills whole 128-byte lines, else padded to an odd number of 16-byte columns.
  const int columns = headDim / 8;
  const int rowBytes = 16 * (columns % 8 == 0 ? columns : columns | 1);
  const int ringBytes = 2 * phase.stages * phase.tileKv * rowBytes;
  const int joinBytes = phase.warps * 16 * (headDim + 4 + 2) * 4;
  const int queryBytes = headDim <= 128 ? 0 : phase.tileQ * rowBytes;
  const int recordBytes = (phase.stages + 1) * phase.tileKv * 20;
  return std::max(ringBytes, joinBytes) + queryBytes + recordBytes;
}

int registersOf(const Site &site) {
  return std::min(estimateRegisters(site.shape, site.phase), site.target.registersPerThread);
}

int paddedRows(const PhaseConfig &phase, int rows) { return std::max(phase.tileQ, rows); }

TileCost tileCost(const PhaseConfig &, int, const config::CostCoefficients &cost) {
  return {.gflops = cost.blockGflops};
}

TunedPhase tuned(PhaseConfig phase, std::vector<int> tileQ) {
  return {.phase = std::move(phase),
          .rowsAbove = {},
          .tileQ = std::move(tileQ),
          .tileKv = {32, 64, 128},
          .stages = {2, 3, 4, 5},
          .warps = {2, 4, 8}};
}

std::vector<TunedPhases> tunedPhases(const KernelShape &shape) {
  const PhaseConfig single{"tiles", -1, config::Family::Sm80, 16, 64, 4, 4};
  TunedPhase wide =
      tuned({"wide", 16, config::Family::Sm80, 64, 64, 3, 4}, rowsThatHold(shape, {32, 64, 128}));
  wide.rowsAbove = rowsThatHold(shape, {16, 32, 64});
  return {{"sm80", {tuned(single, rowsThatHold(shape, {16, 32, 64, 128}))}},
          {"sm80+sm80", {std::move(wide), sm80Narrow(shape)}}};
}

/// Tiles far from 64 tokens, more warps than rows need, and blocks that are alone on a multiprocessor.
double oddness(const Site &site) {
  const PhaseConfig &phase = site.phase;
  const double odd = std::abs(std::log2(phase.tileKv / 64.0)) +
                     std::abs(std::log2(phase.warps / std::max(4.0, phase.tileQ / 16.0)));
  return blocksPerSm(site) < 2 ? odd + 2 : odd;
}

} // namespace

int estimateRegisters(const KernelShape &shape, const PhaseConfig &phase) {
  const int tokenWarps = std::max(1, phase.warps / std::max(1, phase.tileQ / 16));
  const int accumulators = shape.headDim / 2;
  const int scores = phase.tileKv / tokenWarps / 2;
  const int queries = shape.headDim <= 128 ? shape.headDim / 4 : 0;
  return accumulators + scores + queries + kOtherRegisters;
}

TunedPhase sm80Narrow(const KernelShape &shape) {
  return tuned({"narrow", -1, config::Family::Sm80, 16, 64, 4, 4}, rowsThatHold(shape, {16, 32, 64}));
}

constinit const Family sm80{
    .name = "sm80",
    .rules = kRules,
    .smemBytes = bytesOf,
    .registers = registersOf,
    .blocksAtOnce = {},
    .canDeal = false,
    // The hardware hands out the lighter units as blocks end; starting a block costs, so not all of them.
    .mostWaves = 8,
    .readsByTensorMap = false,
    .whyNotInvariant = {},
    .paddedRows = paddedRows,
    .tileCost = tileCost,
    .groupRows = 0,
    .defaults = nullptr, // what schedules leave open follows from shape and target (DefaultConfig.cpp)
    .tuned = tunedPhases,
    .oddness = oddness,
};

} // namespace deft::kernels
