// Rule K5, by compiled kernels: what the hooks make of scores decides, and hooks see
// selected tokens as they see all.
#include "runtime/exec/cpu/SparseRunner.h"

#include "compiler/driver/Compilation.h"
#include "compiler/spec/CompileSpec.h"
#include "runtime/exec/DrawnLists.h"
#include "runtime/reference/Selecting.h"
#include "specs/Embedded.h"
#include "tests/support/Forest.h"
#include "tests/unit/runtime/exec/cpu/CompiledProblem.h"

#include <numeric>

namespace deft::exec {
namespace {

struct Compiled {
  explicit Compiled(const std::string &items)
      : Compiled(items, "attention a { query_heads = 6; kv_heads = 2; head_dim = 64; " + items + " }") {}
  Compiled(const std::string &items, const std::string &attention) {
    const std::string text = "import \"library.deft\";\n" + attention;
    support::DiagnosticSink sink;
    auto variants = spec::compileSpec(sources, sources.add("a.deft", text), specs::importResolver(), sink);
    EXPECT_FALSE(sink.hasErrors()) << items;
    variant = std::move(variants.front());
    auto compilation = driver::Compilation::create(variant, sources);
    EXPECT_TRUE(compilation.ok());
    auto made = compilation->jitCpuKernel();
    EXPECT_TRUE(made.ok());
    kernel = *made;
  }

  support::SourceManager sources;
  spec::Variant variant;
  CpuKernel kernel;
};

/// A layer that selects, and one that reads what it selected.
struct Layers {
  Selection selection;
  plan::Paths paths;
  Outputs full, sparse;

  Layers(const Compiled &compiled, const Problem &problem, int budget, int threads = 2) {
    const spec::Variant &variant = compiled.variant;
    const auto rows = static_cast<std::size_t>(problem.inputs.queryCount) * 6;
    const auto slots = problem.inputs.paramSlots(variant);
    const auto view = InputView::of(problem.inputs, variant, slots);
    const auto viewOf = [&](Outputs &outputs) {
      outputs.out.assign(rows * 64, 0xffff);
      if (variant.withLse)
        outputs.lse.assign(rows, std::numeric_limits<float>::quiet_NaN());
      return OutputView{outputs.out.data(), variant.withLse ? outputs.lse.data() : nullptr};
    };
    auto executor = CpuExecutor::create(threads);
    EXPECT_TRUE(executor.ok());
    EXPECT_TRUE(executor->runSelecting(compiled.kernel, variant, problem.plan, view, viewOf(full), budget,
                                       selection, paths));
    EXPECT_TRUE(executor->runSparse(compiled.kernel, variant, selection, paths, view, viewOf(sparse)));
  }
};

void expectRight(const Compiled &compiled, const Problem &problem, const Layers &layers) {
  std::vector<int> queries(problem.tree.queries().size());
  std::iota(queries.begin(), queries.end(), 0);
  const auto lists =
      reference::checkSelection(compiled.variant, problem.tree, problem.inputs, layers.selection, queries, 2);
  EXPECT_TRUE(lists.passed()) << lists.fault;
  EXPECT_GT(lists.recall(), 0.99);
  const auto report = reference::check(compiled.variant, problem.tree, problem.inputs, layers.sparse,
                                       {.threads = 2, .selection = &layers.selection});
  EXPECT_TRUE(report.passed()) << reference::explainFailure(report);
}

void expectRightLists(const std::string &items, int trees = 4) {
  SCOPED_TRACE(items);
  const Compiled compiled(items);
  for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(trees); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Problem problem =
        makeProblem(compiled.variant,
                    seed % 2 ? test::randomForest(seed, {12, 150, 9}) : test::causalForest(seed, {8, 60, 9}),
                    seed % 3 ? 32 : 0, seed);
    for (const int budget : compiled.variant.select->budget.values) {
      const Layers layers(compiled, problem, budget);
      EXPECT_EQ(layers.full.out, run(compiled.kernel, compiled.variant, problem, 2).out)
          << "selecting changes no output";
      expectRight(compiled, problem, layers);
    }
  }
}

TEST(SparseRunnerTest, ListsByKvHeadQueryHeadAndQuery) {
  for (const char *by : {"kv_head", "query_head", "query"})
    expectRightLists(std::string("output = bf16 with lse; select { budget = tune(16, 100, 9000); by = ") +
                     by + "; keep_first = 2; keep_last = 5; }");
}

TEST(SparseRunnerTest, MasksAndScoresDecide) {
  expectRightLists(
      "mask = attention_sink(4, 60); output = bf16 with lse; select { budget = 24; keep_last = 3; }");
  expectRightLists("mask = tree && (kv_pos + head) % 3 != 0; select { budget = 24; by = query; }");
  expectRightLists("score = softcap(s, 2.0) + 0.01 * kv_pos; select { budget = 24; }");
  expectRightLists(
      "param slope : f32[query_heads]; score = alibi(s, slope); select { budget = 24; by = query_head; }");
}

// Rules H6 and K3.
TEST(SparseRunnerTest, KeysAreWhatTheirHookMakesOfThem) {
  expectRightLists("query = x * cos(pos * 0.1); key = x * cos(pos * 0.1) + x_half * sin(pos * 0.1); output = "
                   "bf16 with lse; select { budget = 24; keep_last = 3; }");
  expectRightLists(
      "kv_cache = paged(page_size = 4, dtype = fp8_e4m3); key = x_pair - 0.01 * kv_pos; select { "
      "budget = 20; by = query_head; }");
}

TEST(SparseRunnerTest, ElementsOfTokensDecide) {
  const std::string arrays = "param doc : i32[tokens]; param own : i32[queries]; param gain : f32[tokens]; ";
  expectRightLists(arrays +
                   "mask = doc[token] != own[query]; score = s + gain[token]; select { budget = 24; }");
  expectRightLists(arrays +
                   "kv_cache = contiguous; score = s * gain[token]; select { budget = 24; by = query; }");
}

TEST(SparseRunnerTest, SinksBiasesDtypesAndLayouts) {
  expectRightLists("normalize = softmax with sink(0.5); output = f16 with lse; select { budget = 20; }");
  expectRightLists("normalize = sigmoid(0.1 * kv_pos - 3.0); select { budget = 20; }");
  expectRightLists("dtype = f16; kv_cache = contiguous; select { budget = 20; }");
  expectRightLists("kv_cache = paged(page_size = 1, order = hnd); select { budget = 20; }");
  expectRightLists("kv_cache = paged(page_size = 4, dtype = fp8_e4m3); select { budget = 20; }");
}

/// Lists that several threads share, and their parts' results are merged.
TEST(SparseRunnerTest, LongListsAreCutAlikeForAnyNumberOfThreads) {
  for (const char *items :
       {"output = bf16 with lse; select { budget = tune(512, 513, 1400); }",
        "output = bf16 with lse; normalize = softmax with sink(0.5); select { budget = 1100; by = query; }",
        "normalize = sigmoid(0.1 * kv_pos - 90.0); select { budget = 1100; by = query_head; }",
        "mask = attention_sink(4, 600); output = x * (1 + head % 2) as bf16 with lse; select { budget = 600; "
        "}"}) {
    SCOPED_TRACE(items);
    const Compiled compiled(items);
    const Problem problem = makeProblem(compiled.variant, test::levelTree({1, 3}, {1300, 150}), 0, 1);
    for (const int budget : compiled.variant.select->budget.values) {
      const Layers alone(compiled, problem, budget, 1);
      expectRight(compiled, problem, alone);
      for (const int threads : {2, 5}) {
        const Layers shared(compiled, problem, budget, threads);
        EXPECT_EQ(shared.sparse.out, alone.sparse.out) << threads << " threads, budget " << budget;
        EXPECT_EQ(shared.sparse.lse, alone.sparse.lse) << threads << " threads, budget " << budget;
      }
    }
  }
}

/// Of so many queries that whole lists are taken, because there are units enough for all threads.
TEST(SparseRunnerTest, AQuerysBitsDoNotDependOnHowManyThereAre) {
  constexpr int kQueries = 5'600, kFew = 3;
  constexpr std::size_t kRows = 6 * 64;
  const Compiled compiled("output = bf16 with lse; select { budget = 600; keep_last = 3; }");
  const auto problemOf = [&](int queries) {
    tree::KvTree tree = test::levelTree({1}, {700});
    while (static_cast<int>(tree.queries().size()) < queries)
      EXPECT_TRUE(tree.addQuery(0));
    return makeProblem(compiled.variant, std::move(tree), 0, 1);
  };
  const Problem many = problemOf(kQueries);
  Problem few = problemOf(kFew);
  few.inputs.k = many.inputs.k;
  few.inputs.v = many.inputs.v;
  few.inputs.q.assign(many.inputs.q.begin(), many.inputs.q.begin() + kFew * kRows);
  const Layers ofMany(compiled, many, 600), ofFew(compiled, few, 600);
  EXPECT_TRUE(std::equal(ofFew.sparse.out.begin(), ofFew.sparse.out.end(), ofMany.sparse.out.begin()));
  EXPECT_TRUE(std::equal(ofFew.sparse.lse.begin(), ofFew.sparse.lse.end(), ofMany.sparse.lse.begin()));
  expectRight(compiled, few, ofFew);
}

TEST(SparseRunnerTest, AnAttentionThatSelectsNothingHasNoLists) {
  const Compiled compiled("");
  const Problem problem = makeProblem(compiled.variant, test::randomForest(1), 0, 1);
  auto executor = CpuExecutor::create(1);
  Selection selection;
  plan::Paths paths;
  std::vector<std::uint16_t> out(static_cast<std::size_t>(problem.inputs.queryCount) * 6 * 64);
  const auto ran = executor->runSelecting(compiled.kernel, compiled.variant, problem.plan,
                                          InputView::of(problem.inputs, compiled.variant, {}),
                                          {out.data(), nullptr}, 16, selection, paths);
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.error().message, "`a` selects nothing");
}

// Rule K7.
void expectGivenLists(const std::string &shape, const std::string &items) {
  SCOPED_TRACE(shape + items);
  const Compiled compiled("", "attention a { " + shape + " output = bf16 with lse; " + items +
                                  " select { budget = tune(20, 700); by = caller; } }");
  const spec::Variant &variant = compiled.variant;
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    for (const int budget : variant.select->budget.values) {
      const Problem problem = makeProblem(variant, test::randomForest(seed, {12, 150, 9}), 32, seed);
      plan::Paths paths;
      paths.read(problem.plan);
      const DrawnLists drawn = drawLists(paths, problem.inputs, variant.cache.pageSize, budget, true, seed);
      const auto slots = problem.inputs.paramSlots(variant);
      Outputs sparse;
      const auto rows = static_cast<std::size_t>(problem.inputs.queryCount * variant.queryHeads);
      sparse.out.assign(rows * static_cast<std::size_t>(variant.tensors.out.dim), 0xffff);
      sparse.lse.assign(rows, std::numeric_limits<float>::quiet_NaN());
      auto executor = CpuExecutor::create(2);
      ASSERT_TRUE(executor->runSparse(compiled.kernel, variant, drawn.given(), problem.plan,
                                      InputView::of(problem.inputs, variant, slots),
                                      {sparse.out.data(), sparse.lse.data()}));
      const auto report = reference::check(variant, problem.tree, problem.inputs, sparse,
                                           {.threads = 2, .selection = &drawn.selection});
      EXPECT_TRUE(report.passed()) << reference::explainFailure(report);
    }
}

TEST(SparseRunnerTest, GivenListsAreRead) {
  expectGivenLists("query_heads = 6; kv_heads = 2; head_dim = 64;", "");
  expectGivenLists("query_heads = 6; kv_heads = 2; head_dim = 64; kv_cache = contiguous;",
                   "param gain : f32[tokens]; score = s + gain[token];");
  for (const char *page : {"1", "16", "64"})
    expectGivenLists(
        std::string("query_heads = 5; scale = 0.1; kv_cache = latent(dim = 64, rope = 16, page_size = ") +
            page + ");",
        "");
}

} // namespace
} // namespace deft::exec
