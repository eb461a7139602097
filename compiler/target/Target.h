#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The properties of architectures, as tables. This does not ask a driver, so kernels can be chosen and
/// compiled for other machines.
namespace deft::target {

enum class Mma {
  Sync,  ///< mma.sync m16n8k16, operands in registers
  Wgmma, ///< wgmma m64nNk16, one warp group, operands in shared memory
};

/// The name in the PTX manual: "wgmma".
std::string_view mmaName(Mma kind);

struct MmaShape {
  Mma kind = Mma::Sync;
  int m = 16;
  int n = 8;  ///< smallest; wgmma takes multiples
  int k = 16; ///< of 16-bit elements
};

struct Target {
  std::string_view arch; ///< as `-arch` takes it: "sm_90a"
  int major = 0;         ///< compute capability
  int minor = 0;
  int smemPerBlock = 0;    ///< bytes, the opt-in maximum of dynamic shared memory
  int smemPerSm = 0;       ///< bytes
  int smemReserved = 1024; ///< bytes of every block's share that the system takes
  int registersPerSm = 65536;
  int registersPerThread = 255;
  int threadsPerBlock = 1024;
  int threadsPerSm = 0;
  int blocksPerSm = 0;
  std::span<const MmaShape> mma; ///< usable by a cubin of exactly this arch

  bool has(Mma kind) const;
};

/// All known targets, oldest first.
std::span<const Target> targets();

/// Sorted by shared memory of a block, least first: configs that are legal on the first are legal on most.
std::vector<const Target *> tightestFirst();

/// The target called `arch`, exactly; none when unknown.
const Target *findTarget(std::string_view arch);

/// For an error about an unknown `arch`: "sm_80, sm_86, ...".
std::string targetNames();

/// The nearest name worth suggesting for an unknown `arch`: sm_90 -> sm_90a; none when nothing is near.
std::optional<std::string> suggestTarget(std::string_view arch);

/// True when a device of compute capability major.minor runs cubins made for `target`: the same major
/// and no older minor; those of an architecture with a suffix ("a") run on their own capability alone.
bool runsOn(const Target &target, int major, int minor);

/// The best target for a device; none when the device is older than every target, or of a major
/// version that no table knows (cubins do not cross major versions).
const Target *targetForDevice(int major, int minor);

} // namespace deft::target
