#pragma once

#include "runtime/exec/cpu/Team.h"
#include "runtime/exec/cpu/Worth.h"

#include <atomic>
#include <vector>

namespace deft::exec {

/// Makes the lists of a step, each from what its tokens are worth; lists are taken one by one by whoever is
/// free.
class SelectJob final : public Team::Job {
public:
  /// `keys`: memory of each thread, which holds a path. `selection` has its shape.
  SelectJob(const spec::SelectSpec &select, const plan::Paths &paths, WorthTable &worth, Selection &selection,
            std::vector<std::vector<std::uint64_t>> &keys);

  int helpers() const;
  void run(int slot) noexcept override;

private:
  void makeList(int query, int list, std::vector<std::uint64_t> &keys);

  const spec::SelectSpec &select_;
  const plan::Paths &paths_;
  WorthTable &worth_;
  Selection &selection_;
  std::vector<std::vector<std::uint64_t>> &keys_;
  const int units_;
  std::atomic<int> next_ = 0;
};

} // namespace deft::exec
