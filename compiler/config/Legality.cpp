#include "compiler/config/Legality.h"

#include "compiler/config/SharedMemory.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace deft::config {
namespace {

using support::Error;
using support::ErrorCode;
using support::Result;

/// Addresses, loop state and the row facts of the hooks, beside the fragments; from resource reports
/// of the shipped specs.
constexpr int kOtherRegisters = 96;

class PhaseCheck {
public:
  explicit PhaseCheck(const PhaseConfig &phase) : phase_(phase) {}

  void require(bool holds, const std::string &message, const std::string &hint = {}) {
    if (!holds && ok_) {
      ok_ = false;
      error_ = {ErrorCode::Diagnostics, "phase `" + phase_.name + "`: " + message, hint};
    }
  }
  bool ok() const { return ok_; }
  Result<void> result() const { return ok_ ? Result<void>() : Result<void>(error_); }

private:
  const PhaseConfig &phase_;
  bool ok_ = true;
  Error error_;
};

std::string number(int value) { return std::to_string(value); }

bool isIdentifier(const std::string &name) {
  const auto isWord = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name.front())) &&
         std::all_of(name.begin(), name.end(), isWord);
}

} // namespace

int estimateRegisters(const KernelShape &shape, const PhaseConfig &phase) {
  const int tokenWarps = std::max(1, phase.warps / std::max(1, phase.tileQ / 16));
  const int accumulators = shape.headDim / 2;
  const int scores = phase.tileKv / tokenWarps / 2;
  const int queries = shape.headDim <= 128 ? shape.headDim / 4 : 0;
  return accumulators + scores + queries + kOtherRegisters;
}

namespace {

void requireSm80(PhaseCheck &check, const KernelShape &shape, const PhaseConfig &phase,
                 const target::Target &target) {
  const int rowWarps = phase.tileQ / 16;
  check.require(phase.warps % rowWarps == 0, "warps is " + number(phase.warps) + ", not a multiple of the " +
                                                 number(rowWarps) + " that a tile of " + number(phase.tileQ) +
                                                 " rows takes");
  if (!check.ok())
    return;
  const int tokenWarps = phase.warps / rowWarps;
  check.require(phase.tileKv % (16 * tokenWarps) == 0,
                "tile_kv is " + number(phase.tileKv) + ", not a multiple of the " + number(16 * tokenWarps) +
                    " tokens that its " + number(tokenWarps) + " token warps take at a time");
  check.require(phase.tileKv <= 32 * phase.warps, "tile_kv is " + number(phase.tileKv) +
                                                      ", more than the block's " + number(32 * phase.warps) +
                                                      " threads");
  const int registers = estimateRegisters(shape, phase);
  const int available = std::min(target.registersPerThread, target.registersPerSm / (32 * phase.warps));
  check.require(registers <= available,
                "a thread needs about " + number(registers) + " registers; a block of " +
                    number(phase.warps) + " warps leaves " + number(available),
                "lower tile_kv or tile_q");
}

void requireSm90(PhaseCheck &check, const KernelShape &shape, const PhaseConfig &phase,
                 const target::Target &target) {
  check.require(target.has(target::Mma::Wgmma),
                "family sm90 needs wgmma, which " + std::string(target.arch) + " does not have",
                "use family sm80");
  check.require(phase.warps == kSm90Warps,
                "warps is " + number(phase.warps) + "; a block of family sm90 has " + number(kSm90Warps));
  check.require(phase.tileQ == 64 || phase.tileQ == 128,
                "tile_q is " + number(phase.tileQ) + "; family sm90 takes 64 or 128");
  check.require(phase.tileKv == 64, "tile_kv is " + number(phase.tileKv) + "; family sm90 takes 64");
  check.require(shape.headDim >= kSm90LeastHeadDim && shape.headDim <= kSm90MostHeadDim,
                "head_dim is " + number(shape.headDim) + "; family sm90 takes " + number(kSm90LeastHeadDim) +
                    " to " + number(kSm90MostHeadDim),
                "use family sm80");
}

} // namespace

Result<void> checkPhase(const KernelShape &shape, const PhaseConfig &phase, const target::Target &target) {
  PhaseCheck check(phase);
  check.require(isIdentifier(phase.name), "its name is not an identifier");
  check.require(phase.name != "merge", "the name is taken by the merge kernel");
  check.require(phase.tileQ >= 16 && phase.tileQ % 16 == 0,
                "tile_q is " + number(phase.tileQ) + ", not a positive multiple of 16");
  check.require(phase.tileQ >= shape.ratio(),
                "tile_q is " + number(phase.tileQ) + ", less than the " + number(shape.ratio()) +
                    " query heads that share a KV head",
                "use at least " + number((shape.ratio() + 15) / 16 * 16));
  check.require(phase.tileKv >= 16 && phase.tileKv % 16 == 0,
                "tile_kv is " + number(phase.tileKv) + ", not a positive multiple of 16");
  check.require(phase.stages >= 2 && phase.stages <= 8,
                "stages is " + number(phase.stages) + ", not between 2 and 8");
  check.require(phase.warps >= 1 && phase.warps * 32 <= target.threadsPerBlock,
                "warps is " + number(phase.warps) + ", not between 1 and " +
                    number(target.threadsPerBlock / 32));
  if (!check.ok())
    return check.result();
  phase.family == Family::Sm90 ? requireSm90(check, shape, phase, target)
                               : requireSm80(check, shape, phase, target);
  if (!check.ok())
    return check.result();
  const int bytes = smemBytes(shape.headDim, phase);
  check.require(bytes <= target.smemPerBlock,
                "it needs " + number(bytes) + " bytes of shared memory; " + std::string(target.arch) +
                    " allows " + number(target.smemPerBlock),
                "lower tile_kv or stages");
  return check.result();
}

Result<void> checkConfig(const KernelShape &shape, const Config &config, const target::Target &target) {
  if (config.phases.empty())
    return Error{ErrorCode::Diagnostics, "a config without phases serves no item", {}};
  if (config.chunkTokens < 0)
    return Error{ErrorCode::Diagnostics, "chunk is " + number(config.chunkTokens) + ", less than 0", {}};
  std::set<std::string> names;
  for (std::size_t i = 0; i < config.phases.size(); ++i) {
    const PhaseConfig &phase = config.phases[i];
    if (Result<void> result = checkPhase(shape, phase, target); !result)
      return result;
    if (!names.insert(phase.name).second)
      return Error{ErrorCode::Diagnostics, "two phases are called `" + phase.name + "`", {}};
    const bool last = i + 1 == config.phases.size();
    if (last && phase.rowsAbove >= 0)
      return Error{ErrorCode::Diagnostics,
                   "the last phase, `" + phase.name + "`, serves only items of more than " +
                       number(phase.rowsAbove) + " rows",
                   "end with a phase `otherwise`"};
    if (!last && phase.rowsAbove <= config.phases[i + 1].rowsAbove)
      return Error{ErrorCode::Diagnostics,
                   "phase `" + config.phases[i + 1].name + "` is never reached: `" + phase.name +
                       "` before it serves its items",
                   {}};
  }
  return {};
}

} // namespace deft::config
