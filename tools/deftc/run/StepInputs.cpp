#include "tools/deftc/run/StepInputs.h"

#include "runtime/exec/RandomInputs.h"
#include "runtime/exec/SizedParams.h"
#include "tools/deftc/common/Numbers.h"
#include "tools/deftc/common/Progress.h"
#include "tools/deftc/run/Memory.h"
#include "tools/deftc/run/RunInputs.h"

#include <algorithm>
#include <optional>

namespace deft::cli {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

tree::PlacementOptions placementOf(const RunOptions &options, const spec::Variant &variant) {
  tree::PlacementOptions placement;
  placement.pageSize = variant.cache.pageSize;
  placement.seed = options.seed;
  if (options.pages == "scattered")
    placement.order = tree::PlacementOrder::Scattered;
  return placement;
}

} // namespace

Result<void> checkRoom(const spec::Variant &variant, std::int64_t tokens, std::size_t queries) {
  return checkMemory(counted(static_cast<long long>(tokens), "token", "tokens") +
                         " and the inputs and outputs of " +
                         counted(static_cast<long long>(queries), "query", "queries"),
                     static_cast<double>(tokens) * variant.kvHeads * variant.tensors.cacheBytes() +
                         static_cast<double>(queries) * variant.queryHeads *
                             (variant.tensors.q.rowBytes() + variant.tensors.out.rowBytes()));
}

Result<replay::TreeSteps> openTrees(Context &context, const RunOptions &options) {
  if (auto read = context.files.reads(options.tree); !read)
    return read.error();
  if (auto read = context.files.readsFolder(options.recordsFolder); !read)
    return read.error();
  if (!options.inputs.empty())
    if (auto read = readsInputs(context, options.inputs); !read)
      return read.error();
  const Underway underway(context, "making the tree");
  const std::string file = options.inputs.empty() ? options.tree : options.inputs + "/tree.json";
  auto steps = options.workload.empty()
                   ? replay::TreeSteps::ofFile(file)
                   : replay::TreeSteps::ofWorkload(options.workload, options.seed, options.recordsFolder);
  if (steps && options.steps - 1 > steps->stepsLeft())
    return Error{ErrorCode::Usage,
                 "`" + steps->name() + "` has " + std::to_string(steps->stepsLeft() + 1) + " steps, not " +
                     std::to_string(options.steps),
                 ""};
  return steps;
}

StepInputs::StepInputs(replay::TreeSteps steps, Place place, exec::Inputs inputs)
    : steps_(std::move(steps)), place_(std::move(place)), inputs_(std::move(inputs)) {
  countQueries();
}

void StepInputs::countQueries() { inputs_.queryCount = static_cast<int>(tree().queries().size()); }

Result<StepInputs> StepInputs::open(Context &context, const RunOptions &options, const spec::Variant &variant,
                                    replay::TreeSteps steps, std::vector<exec::ParamValue> params,
                                    int threads) {
  if (auto fits = checkRoom(variant, steps.tree().tokens(), steps.tree().queries().size()); !fits)
    return fits.error();
  std::optional<Underway> underway;
  if (options.inputs.empty()) // reading says how far it is
    underway.emplace(context, "making inputs");
  return options.steps > 1 ? ofSteps(options, variant, std::move(steps), std::move(params), threads)
                           : ofTree(context, options, variant, std::move(steps), std::move(params), threads);
}

Result<StepInputs> StepInputs::ofTree(Context &context, const RunOptions &options,
                                      const spec::Variant &variant, replay::TreeSteps steps,
                                      std::vector<exec::ParamValue> params, int threads) {
  tree::KvTree tree = steps.tree();
  if (auto fits = exec::checkSizedParams(variant, tree, params); !fits)
    return fits.error();
  const auto placement = tree::placeInCache(tree, placementOf(options, variant));
  if (!placement)
    return placement.error();
  return ofPlaced(context, options, variant, replay::TreeSteps::ofTree(steps.name(), std::move(tree)),
                  *placement, std::move(params), threads);
}

Result<StepInputs> StepInputs::ofPlaced(Context &context, const RunOptions &options,
                                        const spec::Variant &variant, replay::TreeSteps steps,
                                        const tree::CachePlacement &placement,
                                        std::vector<exec::ParamValue> params, int threads) {
  tree::KvTree tree = steps.tree();
  if (auto fits = exec::checkSizedParams(variant, tree, params); !fits)
    return fits.error();
  auto inputs = options.inputs.empty()
                    ? Result<exec::Inputs>(exec::makeRandomInputs(variant, tree, placement, std::move(params),
                                                                  options.seed, threads))
                    : readInputs(context, options.inputs, variant, tree, placement, std::move(params));
  if (!inputs)
    return inputs.error();
  return StepInputs(std::move(steps), std::move(tree), std::move(*inputs));
}

Result<StepInputs> StepInputs::ofSteps(const RunOptions &options, const spec::Variant &variant,
                                       replay::TreeSteps steps, std::vector<exec::ParamValue> params,
                                       int threads) {
  auto cache = replay::ServedCache::open(steps, options.steps, placementOf(options, variant));
  if (!cache)
    return cache.error();
  if (auto fits = cache->checkParams(variant, params); !fits)
    return fits.error();
  const int unit = std::max(variant.cache.pageSize, 1);
  if (auto fits = checkRoom(variant, cache->pages() * unit, cache->tree().queries().size()); !fits)
    return fits.error();
  exec::Inputs inputs = cache->makeInputs(variant, std::move(params), options.seed, threads);
  return StepInputs(std::move(steps), std::move(*cache), std::move(inputs));
}

const tree::KvTree &StepInputs::tree() const {
  const auto *cache = std::get_if<replay::ServedCache>(&place_);
  return cache ? cache->tree() : std::get<tree::KvTree>(place_);
}

Result<void> StepInputs::next(const spec::Variant &variant) {
  if (auto followed = std::get<replay::ServedCache>(place_).next(steps_, variant, inputs_); !followed)
    return followed;
  countQueries();
  return {};
}

} // namespace deft::cli
