#include "runtime/exec/cuda/PlanSelecting.h"

#include "runtime/exec/cuda/CudaExecutor.h"
#include "runtime/reference/Selecting.h"
#include "tests/unit/runtime/exec/cuda/FakeGpu.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

namespace deft::exec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// With the kernels of an attention that selects, with clusters of two.
class SelectingGpu : public FakeGpu {
public:
  explicit SelectingGpu(int budget, spec::SelectBy by = spec::SelectBy::KvHead, int keepFirst = 2,
                        int keepLast = 3, int phases = 1, std::optional<config::Family> unites = {})
      : FakeGpu(0, phases) {
    variant.select.emplace();
    variant.select->budget.values = {budget};
    variant.select->by = by;
    variant.select->keepFirst = keepFirst;
    variant.select->keepLast = keepLast;
    fake_cuda::setVariant(
        {6, 2, 16, variant.cache.pageSize, true, 0.25f, variant.worthGroups(), variant.lists()});
    package::SelectingKernels &selecting = set.selecting.emplace();
    const auto kernel = [](const std::string &entry, int threads) {
      return package::Kernel{.entry = entry, .cubin = "fake", .threads = threads, .resources = {}};
    };
    if (!variant.readsGivenLists()) {
      for (const config::PhaseConfig &phase : set.config.phases)
        selecting.attend.push_back(kernel("deft_small_" + phase.name + "_selecting", 128));
      selecting.select = kernel("deft_small_select", 1024);
      selecting.select->smemBytes = 20000;
      selecting.blocksOfList = 2;
      selecting.cachedKeys = 4096;
    }
    selecting.sparse = kernel("deft_small_sparse", 128);
    selecting.sparsePhase = {.name = "sparse", .tileQ = 16, .tileKv = 16};
    if (unites)
      selecting.uniting = {kernel("deft_small_unite", 1024),
                           4,
                           kernel("deft_small_united", 128),
                           {.name = "united", .family = *unites, .tileQ = 32, .tileKv = 16}};
    kernels = *CudaKernels::load(device, variant, set);
    (void)fake_cuda::takeCalls();
  }
};

CudaPlanOptions optionsOf(const SelectingGpu &gpu) {
  CudaPlanOptions options;
  options.budget = gpu.variant.select->defaultBudget();
  return options;
}

tree::KvTree someTree(int branches = 9) { return test::levelTree({1, 3, branches}, {100, 40, 20}); }

std::vector<std::string> launchedKernels() {
  std::vector<std::string> kernels;
  for (const fake_cuda::Call &call : fake_cuda::takeCalls())
    if (call.name == "cuLaunchKernel")
      kernels.push_back(call.kernel);
  return kernels;
}

TEST(PlanSelectingTest, ListsAndSparseOutputsAreThoseOfTheOracle) {
  int united = 0;
  for (const auto &[by, unites] : {std::pair(spec::SelectBy::KvHead, std::optional<config::Family>()),
                                   {spec::SelectBy::QueryHead, {}},
                                   {spec::SelectBy::Query, {}},
                                   {spec::SelectBy::KvHead, config::Family::Sm80},
                                   {spec::SelectBy::Query, config::Family::Sm80},
                                   {spec::SelectBy::KvHead, config::Family::Sm90},
                                   {spec::SelectBy::Query, config::Family::Sm90}})
    for (const int budget : {5, 70, 1000})
      for (auto &[name, tree] : test::edgeTrees()) {
        SCOPED_TRACE(name + ", " + std::to_string(budget));
        const SelectingGpu gpu(budget, by, 2, 3, 1 + budget % 2, unites);
        const auto placement = tree::placeInCache(
            tree, {gpu.variant.cache.pageSize, tree::PlacementOrder::Scattered, /*seed=*/7, 0});
        ASSERT_TRUE(placement.ok());
        const Inputs inputs = makeRandomInputs(gpu.variant, tree, *placement, {}, 7);
        auto executor = CudaExecutor::create(gpu.device, gpu.variant, gpu.set, budget);
        ASSERT_TRUE(executor.ok()) << executor.error().message;
        CudaInputs on(gpu.device, gpu.variant);
        ASSERT_TRUE(on.load(inputs).ok());
        const plan::Plan plan = gpu.makePlan(tree);
        Outputs full, again, sparse;
        Selection selection;
        ASSERT_TRUE((*executor)->run(plan, on, full).ok());
        ASSERT_TRUE((*executor)->poison().ok());
        ASSERT_TRUE((*executor)->runSelecting(plan, on, again, selection).ok());
        EXPECT_EQ(again.out, full.out);
        std::vector<int> queries(static_cast<std::size_t>(inputs.queryCount));
        std::iota(queries.begin(), queries.end(), 0);
        const auto lists = reference::checkSelection(gpu.variant, tree, inputs, selection, queries, 1);
        EXPECT_TRUE(lists.passed()) << lists.fault;
        ASSERT_TRUE((*executor)->poison().ok());
        ASSERT_TRUE((*executor)->runSparse(on, sparse).ok());
        reference::CheckOptions options;
        options.selection = &selection;
        const auto check = reference::check(gpu.variant, tree, inputs, sparse, options);
        EXPECT_TRUE(check.passed()) << reference::explainFailure(check);
        for (const fake_cuda::Call &call : fake_cuda::takeCalls())
          united += call.kernel == "deft_small_united";
      }
  EXPECT_GT(united, 20);
}

/// Whatever a file names.
TEST(PlanSelectingTest, SparseOutputsAreRightHoweverListsAreCut) {
  std::set<int> cuts;
  for (int itemTokens = 1; itemTokens <= 80; itemTokens += 7) {
    SCOPED_TRACE(itemTokens);
    const SelectingGpu gpu(70);
    tree::KvTree tree = someTree(5);
    const int queries = static_cast<int>(tree.queries().size());
    const auto placement = tree::placeInCache(
        tree, {.pageSize = gpu.variant.cache.pageSize, .order = tree::PlacementOrder::Scattered, .seed = 3});
    const Inputs inputs = makeRandomInputs(gpu.variant, tree, *placement, {}, 3);
    auto executor =
        *CudaExecutor::create(gpu.device, gpu.variant, gpu.set, 70,
                              {{35, queries, 16}, {70, queries + 1, 1}, {70, queries, itemTokens}});
    CudaInputs on(gpu.device, gpu.variant);
    ASSERT_TRUE(on.load(inputs).ok());
    Outputs full, sparse;
    Selection selection;
    ASSERT_TRUE(executor->runSelecting(gpu.makePlan(tree), on, full, selection).ok());
    ASSERT_TRUE(executor->poison().ok());
    ASSERT_TRUE(executor->runSparse(on, sparse).ok());
    reference::CheckOptions options;
    options.selection = &selection;
    const auto check = reference::check(gpu.variant, tree, inputs, sparse, options);
    EXPECT_TRUE(check.passed()) << reference::explainFailure(check);
    ASSERT_TRUE(executor->sparseCut());
    EXPECT_TRUE(executor->sparseCut()->isTuned);
    EXPECT_EQ(executor->sparseCut()->itemTokens, (itemTokens + 15) / 16 * 16);
    cuts.insert(executor->sparseCut()->parts);
  }
  EXPECT_THAT(cuts, ElementsAre(1, 2, 3, 5));
}

TEST(PlanSelectingTest, WhoMeasuresCutsInPlaceOfWhatTheKernelsKnow) {
  const SelectingGpu gpu(70);
  const auto kernels = *CudaKernels::load(gpu.device, gpu.variant, gpu.set, {{70, 8, 32}});
  EXPECT_EQ(PlanSelecting::create(*kernels, 70, false)->split().cut(8), (SparseSplit::Cut{32, 3, true}));
  EXPECT_TRUE(PlanSelecting::create(*kernels, 60, false)->split().tuned.empty());
  const std::vector<config::SparseCut> none;
  EXPECT_FALSE(PlanSelecting::create(*kernels, 70, false, 0, &none)->split().cut(8).isTuned);
}

TEST(PlanSelectingTest, ASelectionLeavesTheWorthAsItFoundIt) {
  const SelectingGpu gpu(8);
  const cu::Stream stream = makeStream(gpu);
  const auto plan = gpu.makeDevicePlan(optionsOf(gpu));
  FakeStep step(gpu, someTree(), 2);
  ASSERT_TRUE(plan->write(gpu.makePlan(step.tree)).ok());
  ASSERT_TRUE(plan->upload(stream).ok());
  (void)fake_cuda::takeCalls();
  ASSERT_TRUE(plan->runSelecting(*gpu.kernels, step.pointers(), stream).ok());
  for (const fake_cuda::Call &call : fake_cuda::takeCalls()) {
    if (call.kernel != "deft_small_select")
      continue;
    const auto args = call.argsAs<abi::SelectArgs>();
    const int keys = args.queries * 2 * args.selected.worthStride;
    EXPECT_EQ(std::count(args.selected.worth, args.selected.worth + keys, 0u), keys);
    return;
  }
  FAIL() << "nothing selects";
}

TEST(PlanSelectingTest, ARunOnlyLaunches) {
  const SelectingGpu gpu(200, spec::SelectBy::KvHead, 4, 64);
  const cu::Stream stream = makeStream(gpu);
  const auto plan = gpu.makeDevicePlan(optionsOf(gpu));
  FakeStep step(gpu, someTree(), 2);
  const plan::Plan made = gpu.makePlan(step.tree);
  ASSERT_TRUE(plan->write(made).ok());
  ASSERT_TRUE(plan->upload(stream).ok());
  (void)fake_cuda::takeCalls();
  const CudaPointers pointers = step.pointers();

  ASSERT_TRUE(plan->runSelecting(*gpu.kernels, pointers, stream).ok());
  const auto selecting = fake_cuda::takeCalls();
  ASSERT_EQ(selecting.size(), 3u); // it waits for nothing, and copies nothing
  EXPECT_EQ(selecting[0].kernel, "deft_small_narrow_selecting");
  EXPECT_EQ(selecting[1].kernel, "deft_small_merge");
  EXPECT_EQ(selecting[2].kernel, "deft_small_select");
  EXPECT_EQ(selecting[2].cluster, 2);
  EXPECT_EQ(selecting[2].blocks, 9u * 2 * 2); // a cluster a list
  EXPECT_EQ(selecting[2].smemBytes, 20000u - 4 * (4096 - 1024)) << "for the keys of short paths";
  const auto args = selecting[2].argsAs<abi::SelectArgs>();
  EXPECT_EQ(args.queries, 9);
  EXPECT_EQ(std::pair(args.keepFirst, args.keepLast), std::pair(4, 64));
  EXPECT_EQ(args.selected.pageTable, pointers.pageTable);
  EXPECT_EQ(args.selected.budget, 200);
  EXPECT_EQ(args.selected.worthStride % 4, 0);
  EXPECT_GE(args.selected.worthStride, 160);
  const abi::Selected &known = *selecting[0].argsAs<abi::AttendArgs>().selected, &own = args.selected;
  EXPECT_EQ(std::pair(known.worth, known.stretches), std::pair(own.worth, own.stretches));
  EXPECT_TRUE(step.isRight());

  ASSERT_TRUE(plan->runSparse(*gpu.kernels, pointers, stream).ok());
  const auto sparse = fake_cuda::takeCalls();
  ASSERT_EQ(sparse.size(), 2u);
  EXPECT_EQ(sparse[0].kernel, "deft_small_sparse");
  EXPECT_EQ(sparse[1].kernel, "deft_small_merge");
  const auto attend = sparse[0].argsAs<abi::AttendArgs>();
  EXPECT_EQ(attend.itemBegin, 0);
  EXPECT_EQ(attend.itemCount, 9 * 7); // parts of 32 tokens and one of 8
  EXPECT_EQ(attend.planLines, 0);
  EXPECT_EQ(attend.selected, selecting[0].argsAs<abi::AttendArgs>().selected);
  EXPECT_EQ(sparse[1].argsAs<abi::MergeArgs>().mergeCount, 9);
}

/// The slots of each query's path, with a hole before each.
std::vector<int> slotsOfPaths(const plan::Plan &plan, const int *pageTable, int pageSize, int budget) {
  plan::Paths paths;
  paths.read(plan);
  std::vector<int> slots(static_cast<std::size_t>(paths.queryCount() * budget), -1);
  for (int query = 0; query < paths.queryCount(); ++query) {
    auto to = slots.begin() + query * budget;
    for (const plan::PathStretch &stretch : paths.of(query))
      for (int t = 0; t < stretch.tokens; ++t, to += 2)
        to[1] = static_cast<int>(cacheSlotOf(pageTable, pageSize, stretch.location + t));
  }
  return slots;
}

// Rule K7: lists of all that a query sees give the full attention.
TEST(PlanSelectingTest, GivenListsNeedNoRunThatSelects) {
  const SelectingGpu gpu(400, spec::SelectBy::Caller, 0, 0);
  const cu::Stream stream = makeStream(gpu);
  CudaPlanOptions options = optionsOf(gpu);
  options.checksPages = true;
  auto made = CudaPlan::create(gpu.kernels, options);
  if (!made && made.error().code == support::ErrorCode::Environment)
    GTEST_SKIP() << made.error().message;
  ASSERT_TRUE(made.ok()) << made.error().message;
  CudaPlan &plan = **made;
  FakeStep step(gpu, someTree(), 3);
  const plan::Plan host = gpu.makePlan(step.tree);
  ASSERT_TRUE(plan.write(host).ok());
  ASSERT_TRUE(plan.upload(stream).ok());
  CudaPointers pointers = step.pointers();
  pointers.cachePages = 1000;
  EXPECT_EQ(plan.runSparse(*gpu.kernels, pointers, stream).error().message,
            "no lists are given, and `small` reads those of its caller");
  EXPECT_EQ(plan.runSelecting(*gpu.kernels, pointers, stream).error().message,
            "`small` selects nothing: its lists are by `caller`");
  std::vector<int> lists = slotsOfPaths(host, pointers.pageTable, gpu.variant.cache.pageSize, 400);
  pointers.lists = lists.data();
  (void)fake_cuda::takeCalls();
  ASSERT_TRUE(plan.runSparse(*gpu.kernels, pointers, stream).ok());
  EXPECT_TRUE(step.isRight());
  EXPECT_TRUE(plan.checkReplays().ok());
  EXPECT_THAT(launchedKernels(), ::testing::IsSupersetOf({"deft_small_sparse", "deft_small_merge"}));
  lists[401] = -3;
  ASSERT_TRUE(plan.runSparse(*gpu.kernels, pointers, stream).ok());
  EXPECT_THAT(plan.checkReplays().error().message,
              HasSubstr("a run read a list that has -3 for query 1, and the cache has "));
}

TEST(PlanSelectingTest, BranchesReadTheirListsAsOne) {
  const SelectingGpu gpu(60, spec::SelectBy::KvHead, 2, 3, 1, config::Family::Sm90);
  const cu::Stream stream = makeStream(gpu);
  const auto plan = gpu.makeDevicePlan(optionsOf(gpu));
  FakeStep step(gpu, test::levelTree({1, 6}, {100, 20}), 2);
  ASSERT_TRUE(plan->write(gpu.makePlan(step.tree)).ok());
  ASSERT_TRUE(plan->upload(stream).ok());
  (void)fake_cuda::takeCalls();
  ASSERT_TRUE(plan->runSelecting(*gpu.kernels, step.pointers(), stream).ok());
  EXPECT_THAT(launchedKernels(), ElementsAre("deft_small_narrow_selecting", "deft_small_merge",
                                             "deft_small_select", "deft_small_unite"));
  ASSERT_TRUE(plan->runSparse(*gpu.kernels, step.pointers(), stream).ok());
  EXPECT_THAT(launchedKernels(), ElementsAre("deft_small_united", "deft_small_merge"));

  CudaPlanOptions options = optionsOf(gpu); // whose bits would hang on who is in a union
  options.isInvariant = true;
  const auto invariant = gpu.makeDevicePlan(options);
  ASSERT_TRUE(invariant->write(gpu.makePlan(step.tree)).ok());
  ASSERT_TRUE(invariant->upload(stream).ok());
  ASSERT_TRUE(invariant->runSelecting(*gpu.kernels, step.pointers(), stream).ok());
  (void)fake_cuda::takeCalls();
  ASSERT_TRUE(invariant->runSparse(*gpu.kernels, step.pointers(), stream).ok());
  EXPECT_THAT(launchedKernels(), ElementsAre("deft_small_sparse")); // lists of one part, and nothing to merge

  const SelectingGpu old(60); // a package without them
  const auto ran = plan->runSelecting(*old.kernels, step.pointers(), stream);
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.error().message,
            "the plan has 6 queries that read a union of their lists; these kernels take 0");
}

/// Where a union's tokens begin is a number of 32 bits.
TEST(PlanSelectingTest, NoMoreQueriesAreInUnionsThanKernelsCount) {
  const SelectingGpu gpu(1 << 20, spec::SelectBy::KvHead, 2, 3, 1, config::Family::Sm90);
  auto selecting = PlanSelecting::create(*gpu.kernels, 1 << 20, false);
  ASSERT_TRUE(selecting.ok());
  PlanRoom room;
  room.queries = room.unitedQueries = 600;
  selecting->completeRoom(room);
  EXPECT_EQ(room.unitedQueries, 512); // two lists each
  auto few = PlanSelecting::create(*gpu.kernels, 100, false);
  ASSERT_TRUE(few.ok());
  room.unitedQueries = 600;
  few->completeRoom(room);
  EXPECT_EQ(room.unitedQueries, 600);
}

/// A plan that comes into the room of one without unions does without them.
TEST(PlanSelectingTest, ACapturedRoomWithoutUnionsServesBranches) {
  const SelectingGpu gpu(60, spec::SelectBy::KvHead, 2, 3, 1, config::Family::Sm90);
  const cu::Stream stream = makeStream(gpu);
  const auto plan = gpu.makeDevicePlan(optionsOf(gpu));
  FakeStep apart(gpu, test::levelTree({12}, {160}), 2), branches(gpu, test::levelTree({1, 6}, {100, 20}), 3);
  ASSERT_TRUE(plan->write(gpu.makePlan(apart.tree)).ok());
  PlanRoom room = plan->room();
  room.growFor(gpu.makePlan(branches.tree));
  room.stretches += 100;
  ASSERT_TRUE(plan->setRoom(room).ok());
  ASSERT_TRUE(plan->write(gpu.makePlan(apart.tree)).ok());
  ASSERT_TRUE(plan->upload(stream).ok());
  const cu::GraphExec graph = capture(gpu, stream, [&]() -> support::Result<void> {
    if (auto ran = plan->runSelecting(*gpu.kernels, branches.pointers(), stream); !ran)
      return ran;
    return plan->runSparse(*gpu.kernels, branches.pointers(), stream);
  });
  const auto written = plan->write(gpu.makePlan(branches.tree));
  ASSERT_TRUE(written.ok()) << written.error().message;
  ASSERT_TRUE(plan->upload(stream).ok());
  (void)fake_cuda::takeCalls();
  ASSERT_EQ(gpu.device->api().graphLaunch(graph, stream), cu::kSuccess);
  EXPECT_THAT(launchedKernels(), ::testing::Not(::testing::Contains("deft_small_united")));
}

TEST(PlanSelectingTest, ACapturedStepServesLaterAndSmallerTrees) {
  const SelectingGpu gpu(24);
  const cu::Stream stream = makeStream(gpu);
  const auto plan = gpu.makeDevicePlan(optionsOf(gpu));
  FakeStep large(gpu, someTree(9), 2), small(gpu, someTree(2), 3);
  ASSERT_TRUE(plan->write(gpu.makePlan(large.tree)).ok());
  ASSERT_TRUE(plan->upload(stream).ok());
  const CudaPointers ofLarge = large.pointers(), ofSmall = small.pointers();
  const auto captured = [&](const CudaPointers &pointers) {
    return capture(gpu, stream, [&]() -> support::Result<void> {
      if (auto ran = plan->runSelecting(*gpu.kernels, pointers, stream); !ran)
        return ran;
      return plan->runSparse(*gpu.kernels, pointers, stream);
    });
  };
  const cu::GraphExec first = captured(ofLarge), second = captured(ofSmall);
  ASSERT_EQ(gpu.device->api().graphLaunch(first, stream), cu::kSuccess);

  ASSERT_TRUE(plan->write(gpu.makePlan(small.tree)).ok());
  ASSERT_TRUE(plan->upload(stream).ok());
  (void)fake_cuda::takeCalls();
  ASSERT_EQ(gpu.device->api().graphLaunch(second, stream), cu::kSuccess);
  Selection selection;
  ASSERT_TRUE(plan->readLists(selection, stream).ok());
  EXPECT_EQ(selection.queries, 2);
  EXPECT_THAT(selection.counts, ::testing::Each(24));
}

TEST(PlanSelectingTest, AStepThatExceedsTheCapturedRoomIsRefused) {
  const SelectingGpu gpu(24);
  const cu::Stream stream = makeStream(gpu);
  const auto plan = gpu.makeDevicePlan(optionsOf(gpu));
  FakeStep step(gpu, test::levelTree({1, 4}, {100, 20}), 2);
  const plan::Plan made = gpu.makePlan(step.tree);
  PlanRoom room = plan->roomOf(made); // of all else there is more than enough
  room.runs = room.items[0] = room.mergeSlots = room.partialSlots = 100;
  ASSERT_TRUE(plan->setRoom(room).ok());
  ASSERT_TRUE(plan->write(made).ok());
  ASSERT_TRUE(plan->upload(stream).ok());
  (void)capture(gpu, stream, [&] { return plan->runSelecting(*gpu.kernels, step.pointers(), stream); });
  const auto refused = plan->write(gpu.makePlan(test::levelTree({1, 4}, {100, 21})));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "the plan has 121 tokens on a path, there is room for 120");
}

TEST(PlanSelectingTest, ListsAreOfThePlanThatSelected) {
  const SelectingGpu gpu(8);
  const cu::Stream stream = makeStream(gpu);
  const auto plan = gpu.makeDevicePlan(optionsOf(gpu));
  FakeStep step(gpu, someTree(), 2);
  const auto sparse = [&](const CudaPointers &pointers) {
    const auto ran = plan->runSparse(*gpu.kernels, pointers, stream);
    return ran.ok() ? std::string() : ran.error().message;
  };
  const std::string none =
      "there are no lists of the plan on the device: no run has selected since it was uploaded";
  ASSERT_TRUE(plan->write(gpu.makePlan(step.tree)).ok());
  ASSERT_TRUE(plan->upload(stream).ok());
  EXPECT_EQ(sparse(step.pointers()), none);
  Selection selection;
  EXPECT_FALSE(plan->readLists(selection, stream).ok());
  ASSERT_TRUE(plan->runSelecting(*gpu.kernels, step.pointers(), stream).ok());
  EXPECT_EQ(sparse(step.pointers()), "");
  CudaPointers other = step.pointers();
  other.pageTable = nullptr;
  EXPECT_EQ(sparse(other), "the run has another page table than the selecting run");
  ASSERT_TRUE(plan->write(gpu.makePlan(step.tree)).ok());
  EXPECT_EQ(sparse(step.pointers()), ""); // the device still has the plan that selected
  ASSERT_TRUE(plan->upload(stream).ok());
  EXPECT_EQ(sparse(step.pointers()), none);
}

TEST(PlanSelectingTest, ASelectionThatWasOnlyCapturedHasMadeNoLists) {
  const SelectingGpu gpu(8);
  const cu::Stream stream = makeStream(gpu);
  const auto plan = gpu.makeDevicePlan(optionsOf(gpu));
  FakeStep step(gpu, someTree(), 2);
  ASSERT_TRUE(plan->write(gpu.makePlan(step.tree)).ok());
  ASSERT_TRUE(plan->upload(stream).ok());
  (void)capture(gpu, stream, [&] { return plan->runSelecting(*gpu.kernels, step.pointers(), stream); });
  EXPECT_FALSE(plan->runSparse(*gpu.kernels, step.pointers(), stream).ok());
}

TEST(PlanSelectingTest, WhatCannotSelectSaysWhy) {
  const FakeGpu plain;
  CudaPlanOptions options;
  options.budget = 8;
  auto refused = CudaPlan::create(plain.kernels, options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "`small` selects nothing");

  SelectingGpu gpu(8);
  const auto without = gpu.makeDevicePlan({});
  FakeStep step(gpu, someTree(), 2);
  ASSERT_TRUE(without->write(gpu.makePlan(step.tree)).ok());
  ASSERT_TRUE(without->upload(nullptr).ok());
  auto ran = without->runSelecting(*gpu.kernels, step.pointers(), nullptr);
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.error().message, "the plan was made without a budget, for runs that do not select");

  gpu.set.selecting.reset();
  const auto old = CudaKernels::load(gpu.device, gpu.variant, gpu.set);
  ASSERT_TRUE(old.ok());
  refused = CudaPlan::create(*old, options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "the kernels of `small` do not select");

  options.growth.emplace();
  refused = CudaPlan::create(gpu.kernels, options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "a plan that selects does not follow lengths on the device");

  const auto plan = gpu.makeDevicePlan(optionsOf(gpu));
  plan::DraftTables drafts;
  drafts.requests.emplace_back();
  const auto written = plan->write(gpu.makePlan(step.tree), drafts);
  ASSERT_FALSE(written.ok());
  EXPECT_THAT(written.error().message, HasSubstr("drafts whose tree only the device knows"));
}

TEST(PlanSelectingTest, RoomCountsWorthListsAndPartials) {
  const SelectingGpu gpu(256);
  PlanRoom room;
  room.queries = 10;
  room.items = {4};
  room.partialSlots = 5;
  const RoomBytes without = RoomBytes::of(room, gpu.variant);
  EXPECT_EQ(without.worth + without.lists + without.counts, 0u);
  room.budget = 256;
  room.positions = 1001;
  room.sparseItems = 16;
  room.sparsePartials = 20;
  room.unitedQueries = 6;
  const RoomBytes with = RoomBytes::of(room, gpu.variant);
  EXPECT_EQ(with.worth, 10u * 2 * 1004 * 4);
  EXPECT_EQ(with.lists, 10u * 2 * 256 * 4);
  EXPECT_EQ(with.counts, 10u * 2 * 4);
  EXPECT_EQ(with.partialLse, 20u * 6 * 4);
  EXPECT_EQ(with.unions, 6u * 2 * 256 * 4);
  EXPECT_EQ(with.unionCounts, 3u * 2 * 4);
  EXPECT_EQ(with.onDevice(), with.plan + with.partialOut + with.partialLse + with.worth + 2 * with.lists +
                                 with.counts + 3 * with.unions + with.unionCounts);
}

TEST(PlanSelectingTest, TwoPhasesGiveWorthEach) {
  const SelectingGpu gpu(8, spec::SelectBy::KvHead, 0, 0, 2);
  const cu::Stream stream = makeStream(gpu);
  const auto plan = gpu.makeDevicePlan(optionsOf(gpu));
  FakeStep step(gpu, someTree(), 2);
  ASSERT_TRUE(plan->write(gpu.makePlan(step.tree)).ok());
  ASSERT_TRUE(plan->upload(stream).ok());
  (void)fake_cuda::takeCalls();
  ASSERT_TRUE(plan->runSelecting(*gpu.kernels, step.pointers(), stream).ok());
  EXPECT_THAT(launchedKernels(), ElementsAre("deft_small_wide_selecting", "deft_small_narrow_selecting",
                                             "deft_small_merge", "deft_small_select"));
}

} // namespace
} // namespace deft::exec
