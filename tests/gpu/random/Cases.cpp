#include "tests/gpu/random/Cases.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/kernels/Family.h"
#include "compiler/spec/Names.h"
#include "compiler/support/InOrder.h"
#include "runtime/exec/ParamRanges.h"
#include "runtime/exec/Params.h"
#include "runtime/exec/RandomInputs.h"
#include "runtime/plan/Planner.h"
#include "runtime/tree/CachePlacement.h"
#include "tests/gpu/random/History.h"
#include "tests/gpu/random/Specs.h"
#include "tests/gpu/random/Trees.h"
#include "tests/support/SpreadInputs.h"
#include "tests/support/UnseenPages.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

namespace deft::gpu_test {

using support::Result;

namespace {

std::string familyText(const config::Config &config) {
  std::string text;
  for (const config::PhaseConfig &phase : config.phases)
    text += (text.empty() ? "" : " + ") + config::familyName(phase.family);
  return text;
}

std::string phasesText(const config::Config &config) {
  std::string text;
  for (const config::PhaseConfig &phase : config.phases)
    text += (text.empty() ? "" : " + ") + config::familyName(phase.family) + " " +
            std::to_string(phase.tileQ) + "x" + std::to_string(phase.tileKv) + " " +
            std::to_string(phase.stages) + " stages " + std::to_string(phase.warps) + " warps" +
            (kernels::isDealt(phase, config.order) ? " dealing" : "");
  return text;
}

/// "bf16", "fp8_e4m3, products", "latent fp8_e4m3, scales": the support table's rows name what was run by it.
std::string cacheText(const spec::Tensors &tensors) {
  const bool isUnlike = !tensors.valueInKey && tensors.k.dim != tensors.v.dim;
  return std::string(tensors.valueInKey ? "latent " : "") + spec::toString(tensors.k.dtype) +
         (tensors.hasScales() ? ", scales" : "") + (tensors.byteProducts ? ", products" : "") +
         (isUnlike ? ", unlike" : "");
}

/// The hook that ends the attention's name; what is behind its second `_` in specs of other programs.
std::string hookText(const std::string &attention) {
  std::string found;
  for (const std::string &hook : hookNames())
    if (attention.ends_with("_" + hook) && hook.size() > found.size())
      found = hook;
  return found.empty() ? attention.substr(attention.find('_', attention.find('_') + 1) + 1) : found;
}

CaseName nameOf(const Subject &subject, int tree, const std::string &kind, const config::Config &config,
                const std::string &pages) {
  const spec::Variant &variant = subject.variant;
  const std::string partition = config::partitionName(config.partition);
  const std::string layout = !variant.cache.isPaged()                      ? "contiguous"
                             : variant.cache.order == spec::PageOrder::Nhd ? "nhd"
                                                                           : "hnd";
  CaseName name;
  name.text = variant.name + ", config " + std::to_string(subject.configIndex) + " (" +
              phasesText(subject.config) + "), tree " + std::to_string(tree) + ": " + kind + ", " +
              partition + ", chunk " + std::to_string(config.chunkTokens) + ", " +
              config::orderName(config.order) + ", " + pages;
  name.facts = {
      {"head_dim", std::to_string(variant.tensors.k.dim)},
      {"ratio", std::to_string(variant.ratio())},
      {"dtype", spec::toString(variant.tensors.k.dtype)},
      {"layout", layout},
      {"page_size", std::to_string(variant.cache.pageSize)},
      {"hook", hookText(variant.name)},
      {"attention", cacheText(variant.tensors) + ": " + hookText(variant.name)},
      {"tree", kind},
      {"partition", partition},
      {"order", config::orderName(config.order)},
      {"pages", pages},
      {"family", familyText(config)},
      {"kernels", phasesText(subject.config).find("dealing") != std::string::npos ? "deal" : "do not deal"}};
  return name;
}

Result<std::vector<exec::ParamValue>> randomParams(Random &random, const spec::Variant &variant) {
  std::vector<std::string> assignments;
  for (const spec::Param &param : variant.params)
    if (!param.defaultValue && !param.isSizedByRun()) // those are documents, at random
      assignments.push_back(param.name + (param.type == spec::ScalarType::F32
                                              ? "=0.0" + std::to_string(random.between(1, 9))
                                              : "=" + std::to_string(random.between(1, 100))));
  auto values = exec::bindParams(variant, assignments);
  if (values)
    for (exec::ParamValue &value : *values) // elements of arrays differ, so that the right one is read
      for (std::size_t i = 0; i < value.f32.size(); ++i)
        value.f32[i] *= 1 + static_cast<float>(i % 7) / 8;
  return values;
}

bool sameBits(const exec::Outputs &a, const exec::Outputs &b) {
  return a.out == b.out && a.lse.size() == b.lse.size() &&
         (a.lse.empty() || std::memcmp(a.lse.data(), b.lse.data(), a.lse.size() * sizeof(float)) == 0);
}

plan::VariantFacts factsOf(const Subject &subject, const exec::Inputs &inputs) {
  return plan::VariantFacts::of(subject.variant, config::DeviceKind::Gpu,
                                exec::reachOf(subject.variant, inputs.params));
}

/// The plan is kept by the caller as long as the kernels run it.
Result<void> runPlan(const Subject &subject, const exec::Inputs &inputs, const plan::Plan &plan,
                     exec::Outputs &outputs) {
  return support::inOrder([&] { return subject.kernels.load(inputs); },
                          [&] { return subject.kernels.prepare(plan); },
                          [&] { return subject.kernels.run(outputs); });
}

Result<void> planAndRun(const Subject &subject, const plan::PlanOptions &planOptions,
                        const config::Config &config, const tree::KvTree &tree, const exec::Inputs &inputs,
                        plan::Plan &plan, exec::Outputs &outputs) {
  plan::Planner planner(planOptions);
  if (auto made = planner.make(tree, factsOf(subject, inputs), config, subject.kernels.blocks(), plan); !made)
    return made;
  return runPlan(subject, inputs, plan, outputs);
}

/// A plan that has run, over counting inputs, to be judged later. Longer paths than one pass sees come in
/// turn.
Result<void> count(const Subject &subject, const plan::Plan &plan, int turn, FinishedCase &finished,
                   const tree::KvTree &tree) {
  auto counting = std::make_unique<reference::Counting>(subject.variant, tree, finished.inputs,
                                                        reference::CountOptions{1, kMostRowTokens});
  const auto run = [&](exec::Inputs &inputs, exec::Outputs &outputs) {
    return runPlan(subject, inputs, plan, outputs);
  };
  if (auto ran = reference::runPasses(*counting, run, /*mostPasses=*/1, turn); !ran)
    return ran;
  counting->dropCache();
  finished.counting = std::move(counting);
  return {};
}

/// How a query's rows differ in two runs, for people.
std::string differences(const spec::Variant &variant, const exec::Outputs &a, std::size_t inA,
                        const exec::Outputs &b, std::size_t inB) {
  const auto dim = static_cast<std::size_t>(variant.tensors.out.dim);
  const auto heads = static_cast<std::size_t>(variant.queryHeads);
  std::string text;
  for (std::size_t head = 0; head < heads; ++head) {
    int elements = 0;
    for (std::size_t d = 0; d < dim; ++d)
      elements += a.out[(inA * heads + head) * dim + d] != b.out[(inB * heads + head) * dim + d] ? 1 : 0;
    const float lse = a.lse.empty() ? 0 : b.lse[inB * heads + head] - a.lse[inA * heads + head];
    if (elements > 0 || lse != 0)
      text += "; head " + std::to_string(head) + ": " + std::to_string(elements) + " elements, lse by " +
              std::to_string(lse);
  }
  return text;
}

/// Of arrays over queries those of the queries that stay.
void keepValues(const spec::Variant &variant, const std::vector<std::size_t> &kept,
                std::vector<exec::ParamValue> &params) {
  const auto keep = [&](auto &values) {
    for (std::size_t i = 0; i < kept.size() && !values.empty(); ++i)
      values[i] = values[kept[i]]; // which comes no earlier
  };
  for (std::size_t i = 0; i < params.size(); ++i)
    if (variant.params[i].shape == spec::Param::Shape::PerQuery) {
      keep(params[i].f32);
      keep(params[i].i32);
    }
}

config::Config randomPlanning(Random &random, const config::Config &config, int tree) {
  const auto names = spec::partitionNames();
  config::Config planned = config;
  // In turn, so that each has its share of every kind of tree.
  const int at = (tree * 3 + tree / 10 + random.below(2)) % static_cast<int>(names.size());
  planned.partition = *config::partitionFromName(names[static_cast<std::size_t>(at)]);
  planned.chunkTokens = random.of({0, 0, 0, 32, 64, 100, 128, 256, 1000});
  const int order = random.below(static_cast<int>(config::kAllOrders.size()));
  if (config.order != config::Order::Mixed || random.oneIn(3)) // else kernels have the plans they are for
    planned.order = config::kAllOrders[static_cast<std::size_t>(order)];
  return planned;
}

/// Breaks up every other 16 pages or so: what the copy engine takes at once then stands beside what it does
/// not.
void breakUp(Random &random, std::vector<int> &pageTable) {
  constexpr std::size_t kPiece = 16;
  for (std::size_t at = 0; at + kPiece <= pageTable.size(); at += kPiece)
    if (random.oneIn(2))
      std::swap(pageTable[at], pageTable[at + kPiece - 1]);
}

/// One page at two places that follow each other, as where a request repeats itself.
void repeatPages(Random &random, std::vector<int> &pageTable) {
  for (std::size_t at = 1; at < pageTable.size(); ++at)
    if (random.oneIn(3) && pageTable[at - 1] >= 0 && pageTable[at] >= 0) // else nobody sees it
      pageTable[at] = pageTable[at - 1];
}

} // namespace

void runRandomCases(const Subject &subject, const CaseOptions &options, CheckPool &pool) {
  const int pageSize = subject.variant.cache.pageSize;
  for (int index = 0; index < options.trees; ++index) {
    if (options.onlyTree >= 0 && index != options.onlyTree)
      continue;
    Random random(options.seed,
                  static_cast<std::uint64_t>(1000 * subject.variantIndex + subject.configIndex + 1),
                  static_cast<std::uint64_t>(index));
    // A subject starts where the one before it ended, so that few trees each still see all kinds.
    CaseTree made = randomTree(random, index + (subject.variantIndex + subject.configIndex) * options.trees,
                               pageSize, options.mostQueries);
    const config::Config config = randomPlanning(random, subject.config, index + subject.variantIndex);
    const std::string pages = random.of({"in order", "in pieces", "repeated", "scattered", "scattered"});
    const bool isScattered = pages == "scattered";
    const CaseName name = nameOf(subject, index, made.kind, config, pages);
    auto placement = tree::placeInCache(
        made.tree, {pageSize, isScattered ? tree::PlacementOrder::Scattered : tree::PlacementOrder::InOrder,
                    random.seed(), 0});
    auto params = randomParams(random, subject.variant);
    if (!placement || !params) {
      pool.count(name, !placement ? placement.error().message : params.error().message);
      continue;
    }
    if (pages == "in pieces")
      breakUp(random, placement->pageTable);
    FinishedCase finished;
    finished.name = name;
    finished.variant = &subject.variant;
    finished.inputs =
        exec::makeRandomInputs(subject.variant, made.tree, *placement, std::move(*params), random.seed());
    test::freeUnseenPages(subject.variant, made.tree, finished.inputs);
    if (pages == "repeated")
      repeatPages(random, finished.inputs.pageTable);
    const bool areSpread = random.oneIn(3);
    finished.name.facts["strides"] = areSpread ? "apart" : "packed";
    if (areSpread)
      finished.inputs = test::spreadInputs(subject.variant, std::move(finished.inputs), random.seed());
    plan::Plan plan;
    const auto inPlace = planThroughHistory(random, made.tree, factsOf(subject, finished.inputs), config,
                                            subject.kernels.blocks(), plan);
    if (!inPlace) {
      pool.count(name, inPlace.error().message);
      continue;
    }
    finished.name.facts["history"] = *inPlace > 0 ? "followed in place" : "new";
    if (auto ran = runPlan(subject, finished.inputs, plan, finished.outputs); !ran) {
      pool.count(name, ran.error().message);
      continue;
    }
    const bool areDealt = std::any_of(plan.items.begin(), plan.items.end(),
                                      [](const abi::Item &item) { return item.dealtTiles > 0; });
    finished.name.facts["tokens"] = areDealt ? "dealt" : "not dealt";
    exec::Outputs again;
    if (auto ran = subject.kernels.run(again); !ran) {
      pool.count(name, ran.error().message);
      continue;
    }
    if (!sameBits(finished.outputs, again)) {
      pool.count(name, "a second run gives other bits");
      continue;
    }
    if (pages != "repeated") // there one vector is that of several tokens
      if (auto counted = count(subject, plan, index, finished, made.tree); !counted) {
        pool.count(name, counted.error().message);
        continue;
      }
    finished.tree = std::move(made.tree);
    pool.add(std::move(finished));
  }
}

void runInvariantCases(const Subject &subject, const CaseOptions &options, CheckPool &pool) {
  const spec::Variant &variant = subject.variant;
  const auto heads = static_cast<std::size_t>(variant.queryHeads);
  const auto rowElements = heads * static_cast<std::size_t>(variant.tensors.q.dim);
  const auto outElements = heads * static_cast<std::size_t>(variant.tensors.out.dim);
  for (int index = 0; index < options.invariantTrees; ++index) {
    Random random(options.seed, static_cast<std::uint64_t>(subject.variantIndex) + 7'000'000,
                  static_cast<std::uint64_t>(index));
    CaseTree made = randomTree(random, index + 2 * subject.variantIndex, variant.cache.pageSize, 64);
    config::Config config = subject.config;
    config.phases.resize(1);
    config.phases[0].rowsAbove = -1;
    config.partition = spec::Partition::Node;
    config.chunkTokens = random.of({32, 64, 100, 256});
    CaseName name = nameOf(subject, index, made.kind, config, "invariant");
    const auto fail = [&](const std::string &why) { pool.count(name, why); };
    const auto placement = tree::placeInCache(
        made.tree, {variant.cache.pageSize, tree::PlacementOrder::Scattered, random.seed(), 0});
    auto params = randomParams(random, variant);
    if (!placement || !params) {
      fail(!placement ? placement.error().message : params.error().message);
      continue;
    }
    exec::Inputs all =
        exec::makeRandomInputs(variant, made.tree, *placement, std::move(*params), random.seed());
    plan::Plan plan;
    exec::Outputs full;
    if (auto ran = planAndRun(subject, {true}, config, made.tree, all, plan, full); !ran) {
      fail(ran.error().message);
      continue;
    }
    // The same tree with some of its queries, in the same order: rows of q move, values do not.
    std::vector<std::size_t> kept;
    std::vector<tree::Query> queries;
    exec::Inputs some = all;
    some.q.clear();
    for (std::size_t i = 0; i < made.tree.queries().size(); ++i) {
      if (random.oneIn(2))
        continue;
      kept.push_back(i);
      queries.push_back(made.tree.queries()[i]);
      some.q.insert(some.q.end(), all.q.begin() + static_cast<std::ptrdiff_t>(i * rowElements),
                    all.q.begin() + static_cast<std::ptrdiff_t>((i + 1) * rowElements));
    }
    keepValues(variant, kept, some.params);
    // A hook that reads the query's index sees another one now.
    if (variant.name.ends_with("by_query"))
      continue;
    some.queryCount = static_cast<int>(kept.size());
    tree::KvTree part = made.tree;
    if (auto set = part.setQueries(queries); !set) {
      fail(set.error().message);
      continue;
    }
    plan::Plan partPlan;
    exec::Outputs left;
    if (auto ran = planAndRun(subject, {true}, config, part, some, partPlan, left); !ran) {
      fail(ran.error().message);
      continue;
    }
    std::string failure;
    for (std::size_t i = 0; i < kept.size() && failure.empty(); ++i) {
      const bool isSameOut =
          std::equal(left.out.begin() + static_cast<std::ptrdiff_t>(i * outElements),
                     left.out.begin() + static_cast<std::ptrdiff_t>((i + 1) * outElements),
                     full.out.begin() + static_cast<std::ptrdiff_t>(kept[i] * outElements));
      const bool isSameLse = full.lse.empty() || std::memcmp(&left.lse[i * heads], &full.lse[kept[i] * heads],
                                                             heads * sizeof(float)) == 0;
      if (!isSameOut || !isSameLse)
        failure = "query " + std::to_string(kept[i]) + " has other bits since " +
                  std::to_string(made.tree.queries().size() - kept.size()) + " others left" +
                  differences(variant, full, kept[i], left, i);
    }
    pool.count(name, failure);
    // The same bits may be wrong, and of two that differ one is.
    const auto judge = [&](const char *which, exec::Inputs &inputs, exec::Outputs &outputs,
                           tree::KvTree &tree) {
      FinishedCase finished;
      finished.name = name;
      finished.name.text += which;
      finished.variant = &variant;
      finished.inputs = std::move(inputs);
      finished.outputs = std::move(outputs);
      finished.tree = std::move(tree);
      pool.add(std::move(finished));
    };
    judge(" with all", all, full, made.tree);
    judge(" with some", some, left, part);
  }
}

void runLargePoolCase(const Subject &subject, const CaseOptions &options, CheckPool &pool) {
  const spec::Variant &variant = subject.variant;
  Random random(options.seed, static_cast<std::uint64_t>(subject.variantIndex) + 8'000'000);
  CaseTree made = randomTree(random, 5, variant.cache.pageSize, 64);
  config::Config config = subject.config;
  config.chunkTokens = 0;
  CaseName name = nameOf(subject, 0, "large pool", config, "at the end of the pool");
  const std::int64_t tokenElements = std::int64_t{variant.kvHeads} * variant.tensors.k.dim;
  const auto poolTokens = static_cast<int>((std::int64_t{1} << 31) / tokenElements + 70'000);
  const int pageSize = variant.cache.pageSize;
  auto placement = tree::placeInCache(made.tree, {pageSize, tree::PlacementOrder::InOrder, 0,
                                                  pageSize > 0 ? poolTokens / pageSize : poolTokens});
  auto params = randomParams(random, variant);
  if (!placement || !params)
    return pool.count(name, !placement ? placement.error().message : params.error().message);
  if (pageSize > 0) { // the table's pages are the pool's last
    for (int &page : placement->pageTable)
      page = placement->poolPages - 1 - page;
  } else {
    const int end = static_cast<int>(made.tree.tokens());
    for (int node = 0; node < static_cast<int>(made.tree.nodes().size()); ++node)
      if (auto moved = made.tree.place(node, made.tree.nodes()[static_cast<std::size_t>(node)].location +
                                                 placement->poolPages - end);
          !moved)
        return pool.count(name, moved.error().message);
  }
  FinishedCase finished;
  finished.name = name;
  finished.variant = &variant;
  finished.inputs =
      exec::makeRandomInputs(variant, made.tree, *placement, std::move(*params), random.seed(),
                             static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  plan::Plan plan;
  if (auto ran = planAndRun(subject, {}, config, made.tree, finished.inputs, plan, finished.outputs); !ran)
    return pool.count(name, ran.error().message);
  finished.tree = std::move(made.tree);
  pool.add(std::move(finished));
}

} // namespace deft::gpu_test
