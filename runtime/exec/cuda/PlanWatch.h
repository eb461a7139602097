#pragma once

#include "runtime/device/HostMemory.h"
#include "templates/deft/abi.h"

#include <atomic>
#include <cstdint>
#include <memory>

namespace deft::exec {

/// The host's side of abi::PlanWatch: the generations of the tree and of the plan on the device, in words
/// that kernels read. Any thread may call any function.
class PlanWatch {
public:
  static support::Result<PlanWatch> create(std::shared_ptr<device::Device> device);

  /// The word to which the tree's generation is stored; it lives as long as anyone holds the pointer.
  std::shared_ptr<std::atomic<std::uint64_t>> treeGeneration() const {
    return {memory_, &words().treeGeneration};
  }
  std::uint64_t tree() const { return words().treeGeneration.load(std::memory_order_acquire); }
  void setPlan(std::uint64_t generation) {
    words().planGeneration.store(generation, std::memory_order_release);
  }
  void setFreeRuns(std::uint64_t runs) { words().freeRuns.store(runs, std::memory_order_release); }

  /// The tree's generation that a run of an older plan saw; 0: there was none. Clears it.
  std::uint64_t takeStaleSeen() { return words().staleSeen.exchange(0, std::memory_order_acq_rel); }

  abi::PlanWatch *onDevice() const { return memory_->onDevice<abi::PlanWatch>(); }

private:
  struct Words {
    std::atomic<std::uint64_t> treeGeneration, planGeneration, staleSeen, freeRuns;
  };
  static_assert(sizeof(Words) == sizeof(abi::PlanWatch) && std::atomic<std::uint64_t>::is_always_lock_free);

  explicit PlanWatch(std::shared_ptr<device::HostMemory> memory) : memory_(std::move(memory)) {}
  Words &words() const { return *memory_->as<Words>(); }

  std::shared_ptr<device::HostMemory> memory_;
};

} // namespace deft::exec
