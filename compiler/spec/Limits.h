#pragma once

#include <cstddef>

/// The limits of the language, each with its rule in LANGUAGE.md. The rules L bound time, memory and stack
/// for any input.
namespace deft::spec {

constexpr int kMaxHeads = 4096;             // A2
constexpr int kMaxRatio = 128;              // A2
constexpr int kHeadDimStep = 8;             // A3
constexpr int kByteHeadDimStep = 16;        // A3
constexpr int kMaxHeadDim = 256;            // A3, A10
constexpr int kLatentStep = 16;             // A9
constexpr int kMaxLatentDim = 512;          // A9
constexpr int kMaxLatentRope = 128;         // A9
constexpr int kScaleStep = 4;               // A11
constexpr int kMaxTensorDim = 1024;         // for variants in files; no spec reaches it
constexpr int kMaxPageSize = 1 << 20;       // A5
constexpr int kMaxTable = 1 << 16;          // P3
constexpr int kTileStep = 16;               // S2
constexpr int kMaxTile = 1024;              // S2
constexpr int kMinStages = 2;               // S2
constexpr int kMaxStages = 8;               // S2
constexpr int kMaxWarps = 32;               // S2
constexpr int kMaxBudget = 1 << 20;         // K1
constexpr int kMaxScheduleNumber = 1 << 24; // chunk and rows: far above any tree

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20; // L1
constexpr int kMaxImportDepth = 16;                         // L2
constexpr std::size_t kMaxFiles = 64;                       // L2
constexpr std::size_t kMaxNameLength = 64;                  // L3
constexpr int kMaxNesting = 200;                            // L4
constexpr int kMaxCallDepth = 1000;                         // L5
constexpr std::size_t kMaxOperations = 4096;                // L6
constexpr std::size_t kMaxSteps = std::size_t{1} << 14;     // L6: expression nodes visited
constexpr std::size_t kMaxAttentions = 256;                 // L7
constexpr std::size_t kMaxFunctions = 1024;                 // L7
constexpr int kMaxInheritance = 16;                         // L8
constexpr std::size_t kMaxParams = 32;                      // L9
constexpr std::size_t kMaxArguments = 16;                   // L9
constexpr std::size_t kMaxPhases = 8;                       // L10
constexpr std::size_t kMaxTuneValues = 64;                  // L10

} // namespace deft::spec
