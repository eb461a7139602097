#include "runtime/config_cache/SparseTuning.h"

#include "compiler/kernels/SparsePhase.h"
#include "tests/unit/runtime/config_cache/SparseTesting.h"

#include <gtest/gtest.h>

namespace deft::config_cache {
namespace {

const target::Target &hopper() { return *target::findTarget("sm_90a"); }

package::KernelSet kernelsWith(int tileKv) {
  package::KernelSet set;
  set.selecting.emplace().sparsePhase = {"sparse", -1, config::Family::Sm80, 16, tileKv, 2, 4};
  return set;
}

SparseTuning tuningOf(const std::vector<SparseEntry> &entries) {
  std::vector<LoadedSparseEntry> loaded;
  for (const SparseEntry &entry : entries)
    loaded.push_back({entry, "file" + std::to_string(loaded.size())});
  return SparseTuning(std::move(loaded));
}

TEST(SparseTuningTest, AKernelIsCompiledWithTheTileThatWasChosen) {
  const SparseTuning tuning = tuningOf({someSparseEntry()});
  const auto phase = tuning.phaseFor(selectingVariant(), hopper());
  ASSERT_TRUE(phase);
  EXPECT_EQ(phase->tileKv, 128);
  EXPECT_EQ(phase->warps, 4);
  EXPECT_EQ(phase->name, "sparse");
  EXPECT_EQ(tuning.chosenFor(selectingVariant(), hopper())->path, "file0");
  EXPECT_FALSE(SparseTuning().phaseFor(selectingVariant(), hopper()));
}

TEST(SparseTuningTest, WhatIsOfOthersOrOfOtherKernelsOrNotLegalIsPassedOver) {
  const auto isUsed = [](const SparseEntry &entry, const spec::Variant &variant = selectingVariant()) {
    const SparseTuning tuning = tuningOf({entry});
    return tuning.phaseFor(variant, hopper()).has_value() ||
           !tuning.cutsFor(variant, kernelsWith(128)).empty();
  };
  EXPECT_TRUE(isUsed(someSparseEntry()));
  SparseEntry entry = someSparseEntry();
  entry.provenance.kernelHash = "old";
  EXPECT_FALSE(isUsed(entry));
  entry = someSparseEntry();
  entry.signature.kvHeads = 4;
  EXPECT_FALSE(isUsed(entry));
  entry = someSparseEntry();
  entry.by = spec::SelectBy::Query;
  EXPECT_FALSE(isUsed(entry));
  entry = someSparseEntry();
  entry.tileKv = 144;
  EXPECT_FALSE(isUsed(entry));
  entry = someSparseEntry();
  entry.stages = 8; // more shared memory than there is
  EXPECT_FALSE(isUsed(entry));
  spec::Variant plain = selectingVariant();
  plain.select.reset();
  EXPECT_FALSE(isUsed(someSparseEntry(), plain));
}

TEST(SparseTuningTest, OneThatWasNotChosenAmongSeveralTellsCutsAlone) {
  SparseEntry entry = someSparseEntry();
  entry.isChosen = false;
  const SparseTuning tuning = tuningOf({entry});
  EXPECT_FALSE(tuning.phaseFor(selectingVariant(), hopper()));
  EXPECT_EQ(tuning.cutsFor(selectingVariant(), kernelsWith(128)).size(), 3u);
}

TEST(SparseTuningTest, TheFirstBudgetAndTheFirstFileDecide) {
  SparseEntry small = someSparseEntry(1024, 64), large = someSparseEntry(4096, 128),
              installed = someSparseEntry(4096, 64);
  for (SparseEntry *entry : {&small, &installed})
    entry->cuts.clear();
  const SparseTuning tuning = tuningOf({small, large, installed});
  EXPECT_EQ(tuning.phaseFor(selectingVariant({4096, 1024}), hopper())->tileKv, 128);
  EXPECT_EQ(tuning.phaseFor(selectingVariant({1024, 4096}), hopper())->tileKv, 64);
  EXPECT_EQ(tuning.phaseFor(selectingVariant({512, 1024}), hopper())->tileKv, 64);
  EXPECT_FALSE(tuning.phaseFor(selectingVariant({512}), hopper()));
}

TEST(SparseTuningTest, CutsAreThoseOfTheKernelsTileOfEveryBudget) {
  SparseEntry small = someSparseEntry(1024);
  small.cuts = {{4, 256, 10, 11, 0}};
  const SparseTuning tuning = tuningOf({someSparseEntry(), small, someSparseEntry(2048, 64)});
  const std::vector<config::SparseCut> cuts = tuning.cutsFor(selectingVariant(), kernelsWith(128));
  EXPECT_EQ(cuts,
            (std::vector<config::SparseCut>{{1024, 4, 256}, {4096, 1, 128}, {4096, 8, 0}, {4096, 16, 1024}}));
  EXPECT_EQ(tuning.cutsFor(selectingVariant(), kernelsWith(64)).size(), 3u);
  EXPECT_TRUE(tuning.cutsFor(selectingVariant(), kernelsWith(32)).empty());
  EXPECT_TRUE(tuning.cutsFor(selectingVariant(), {}).empty());
}

TEST(SparseTuningTest, WhichTilesAreLegalIsToldWithoutTheSpec) {
  EXPECT_TRUE(isLegal(someSparseEntry(), hopper()));
  SparseEntry entry = someSparseEntry();
  entry.stages = 8;
  EXPECT_FALSE(isLegal(entry, hopper()));
}

} // namespace
} // namespace deft::config_cache
