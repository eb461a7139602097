#pragma once

#include "runtime/exec/cpu/Team.h"
#include "runtime/exec/cpu/Worth.h"

#include <atomic>
#include <vector>

namespace deft::exec {

/// Makes the lists of a step from the worth of their tokens. Each free thread takes the next
/// list.
class SelectJob final : public Team::Job {
public:
  /// `keys`: one buffer for each thread, large enough for a path. `selection` is already resized.
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
