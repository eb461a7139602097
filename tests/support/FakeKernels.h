#pragma once

#include "runtime/exec/MergeStates.h"
#include "templates/deft/abi.h"
#include "templates/deft/peers_abi.h"
#include "templates/deft/query_abi.h"
#include "templates/deft/select_abi.h"
#include "templates/deft/union_abi.h"
#include "tests/support/FakeCuda.h"

/// The kernels of templates/deft in plain C++, one block after the other, for the fake driver.
namespace deft::fake_cuda {

/// The lists of a query.
inline int listsOf(const Variant &variant) { return variant.lists > 0 ? variant.lists : variant.kvHeads; }
/// Where the tokens of a union that belong to a list begin.
inline long long beginOf(const abi::Union &one, int lists, int list, int budget) {
  return (static_cast<long long>(one.before) * lists + list * one.queryCount) * budget;
}

/// Which attention of a variant that selects; other variants have only the full one.
enum class Layer { Full, Selecting, Sparse, United };
void attend(const Variant &variant, const abi::AttendArgs &args, unsigned blocks, Layer layer = Layer::Full);
void select(const Variant &variant, const abi::SelectArgs &args, unsigned lists);
void unite(const Variant &variant, const abi::UniteArgs &args, unsigned blocks);
void merge(const Variant &variant, const abi::MergeArgs &args, unsigned blocks);
/// For the hook `query = 2 * x`.
void makeQueries(const Variant &variant, const abi::QueryArgs &args, unsigned blocks);

void growPlan(const abi::GrowArgs &args);
void checkPages(const abi::PageCheckArgs &args);
void checkLists(const abi::ListCheckArgs &args, unsigned queries);
/// A launch ends before the next one begins, so a rank whose flag is missing is late at once.
void mergePeers(const abi::PeersArgs &args, exec::StateType type);
void packSlices(const abi::SlicesArgs &args, exec::StateType type);
void mergeSlices(const abi::SlicesArgs &args, exec::StateType type);

struct WritePagesArgs { ///< of exec::DevicePageTable's kernel
  int *table;
  const int (*changes)[2];
  unsigned count;
};
void writePages(const WritePagesArgs &args);

} // namespace deft::fake_cuda
