#include "compiler/target/Target.h"

#include <algorithm>
#include <array>

namespace deft::target {
namespace {

constexpr MmaShape kSync{Mma::Sync, 16, 8, 16};
constexpr MmaShape kWgmma{Mma::Wgmma, 64, 8, 16};

constexpr std::array kSyncOnly{kSync};
constexpr std::array kHopper{kSync, kWgmma};

constexpr int KiB = 1024;

/// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability". sm_100 and sm_120
/// stand without suffix: their cubins then run on the later minors of the family, and tcgen05, which
/// needs sm_100a, is used by no kernel of ours.
// clang-format off
constexpr std::array<Target, 6> kTargets{{
    {.arch = "sm_80", .major = 8, .minor = 0, .smemPerBlock = 163 * KiB, .smemPerSm = 164 * KiB,
     .threadsPerSm = 2048, .blocksPerSm = 32, .mma = kSyncOnly},
    {.arch = "sm_86", .major = 8, .minor = 6, .smemPerBlock = 99 * KiB, .smemPerSm = 100 * KiB,
     .threadsPerSm = 1536, .blocksPerSm = 16, .mma = kSyncOnly},
    {.arch = "sm_89", .major = 8, .minor = 9, .smemPerBlock = 99 * KiB, .smemPerSm = 100 * KiB,
     .threadsPerSm = 1536, .blocksPerSm = 24, .mma = kSyncOnly},
    {.arch = "sm_90a", .major = 9, .minor = 0, .smemPerBlock = 227 * KiB, .smemPerSm = 228 * KiB,
     .threadsPerSm = 2048, .blocksPerSm = 32, .mma = kHopper},
    {.arch = "sm_100", .major = 10, .minor = 0, .smemPerBlock = 227 * KiB, .smemPerSm = 228 * KiB,
     .threadsPerSm = 2048, .blocksPerSm = 32, .mma = kSyncOnly},
    {.arch = "sm_120", .major = 12, .minor = 0, .smemPerBlock = 99 * KiB, .smemPerSm = 100 * KiB,
     .threadsPerSm = 1536, .blocksPerSm = 24, .mma = kSyncOnly},
}};
// clang-format on

bool isSpecific(const Target &target) { return target.arch.ends_with('a'); }

} // namespace

bool Target::has(Mma kind) const {
  return std::any_of(mma.begin(), mma.end(), [&](const MmaShape &shape) { return shape.kind == kind; });
}

std::string_view mmaName(Mma kind) {
  switch (kind) {
  case Mma::Sync:
    return "mma.sync";
  case Mma::Wgmma:
    return "wgmma";
  }
  return {};
}

std::span<const Target> targets() { return kTargets; }

std::vector<const Target *> tightestFirst() {
  std::vector<const Target *> all;
  for (const Target &target : kTargets)
    all.push_back(&target);
  std::stable_sort(all.begin(), all.end(),
                   [](const Target *a, const Target *b) { return a->smemPerBlock < b->smemPerBlock; });
  return all;
}

const Target *findTarget(std::string_view arch) {
  const auto *found = std::find_if(kTargets.begin(), kTargets.end(),
                                   [&](const Target &target) { return target.arch == arch; });
  return found == kTargets.end() ? nullptr : found;
}

std::string targetNames() {
  std::string names;
  for (const Target &target : kTargets) {
    if (!names.empty())
      names += ", ";
    names += target.arch;
  }
  return names;
}

std::optional<std::string> suggestTarget(std::string_view arch) {
  std::string digits;
  std::copy_if(arch.begin(), arch.end(), std::back_inserter(digits),
               [](char c) { return c >= '0' && c <= '9'; });
  for (const Target &target : kTargets)
    if (digits == std::to_string(target.major) + std::to_string(target.minor))
      return std::string(target.arch);
  return std::nullopt;
}

bool runsOn(const Target &target, int major, int minor) {
  if (target.major != major)
    return false;
  return isSpecific(target) ? target.minor == minor : target.minor <= minor;
}

const Target *targetForDevice(int major, int minor) {
  const Target *best = nullptr;
  for (const Target &target : kTargets)
    if (runsOn(target, major, minor))
      best = &target;
  return best;
}

} // namespace deft::target
