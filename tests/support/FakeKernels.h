#pragma once

#include "runtime/exec/MergeStates.h"
#include "templates/deft/abi.h"
#include "templates/deft/peers_abi.h"
#include "templates/deft/query_abi.h"
#include "templates/deft/select_abi.h"
#include "templates/deft/union_abi.h"
#include "tests/support/FakeCuda.h"

/// What the kernels of templates/deft do, a block after the other, for the fake driver.
namespace deft::fake_cuda {

/// Which attention of a variant that selects; others have the full one.
enum class Layer { Full, Selecting, Sparse, United };
void attend(const Variant &variant, const abi::AttendArgs &args, unsigned blocks, Layer layer = Layer::Full);
void select(const Variant &variant, const abi::SelectArgs &args, unsigned lists);
void unite(const Variant &variant, const abi::UniteArgs &args, unsigned blocks);
void merge(const Variant &variant, const abi::MergeArgs &args, unsigned blocks);
/// Of the hook `query = 2 * x`.
void makeQueries(const Variant &variant, const abi::QueryArgs &args, unsigned blocks);

void growPlan(const abi::GrowArgs &args);
void checkPages(const abi::PageCheckArgs &args);
void checkLists(const abi::ListCheckArgs &args, unsigned queries);
/// Launches are over before the next one begins, so a rank whose flag is not there is late at once.
void mergePeers(const abi::PeersArgs &args, exec::StateType type);
void packSlices(const abi::SlicesArgs &args, exec::StateType type);
void mergeSlices(const abi::SlicesArgs &args, exec::StateType type);

struct WritePagesArgs { ///< of exec::DevicePageTable
  int *table;
  const int (*changes)[2];
  unsigned count;
};
void writePages(const WritePagesArgs &args);

} // namespace deft::fake_cuda
