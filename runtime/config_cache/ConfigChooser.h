#pragma once

#include "runtime/config_cache/TreeClassifier.h"
#include "runtime/config_cache/UntunedChooser.h"
#include "runtime/config_cache/VariantLegality.h"

#include <functional>
#include <memory>
#include <optional>

namespace deft::config_cache {

/// Whether the kernels of one config can run the plans of the other, if not as fast.
bool haveSameTiles(const config::Config &a, const config::Config &b);

/// Whether two configs have the same kernels, so that only their plans differ.
bool haveSameKernels(const config::Config &a, const config::Config &b);

/// Gives each step of a run its config. While the tree stays in its class, or near its edge, this looks
/// nothing up and allocates nothing. It makes plans to find the untuned choice only if the tree gets that
/// one. For one thread at a time.
class ConfigChooser {
public:
  /// Rule `heuristic` chooses among the `untuned` configs by the tree, on a device with `units`
  /// multiprocessors. The target (null: the processor) must outlive the chooser.
  ConfigChooser(std::shared_ptr<const ConfigCache> cache, std::shared_ptr<const spec::Variant> variant,
                const target::Target *target, std::vector<config::Config> untuned, int units);
  /// With a single untuned config for all trees.
  ConfigChooser(std::shared_ptr<const ConfigCache> cache, std::shared_ptr<const spec::Variant> variant,
                const target::Target *target, config::Config untuned)
      : ConfigChooser(std::move(cache), std::move(variant), target,
                      std::vector<config::Config>{std::move(untuned)}, 0) {}

  /// Sets the reach of the mask if its parameters do not have their defaults. The next tree begins a new
  /// run.
  void setReach(const plan::Reach &reach);

  /// The ruling for the current tree; valid until the next call. Its list of next candidates is empty.
  const Ruling &choose(const tree::KvTree &tree);
  /// The same for a tree with known features.
  const Ruling &choose(const tree::KvTree &tree, const TreeFeatures &features);
  /// The same for a tree that is made only if its plans must be compared.
  const Ruling &choose(const std::function<const tree::KvTree &()> &treeOf, const TreeFeatures &features);

  /// As choose(), with all next candidates; the last is the untuned choice.
  const Ruling &explain(const tree::KvTree &tree);

  /// The last ruling; for a new chooser, the heuristic's.
  const Ruling &ruling() const { return ruling_; }

  /// The prices by which kernels are compared if nothing is tuned.
  const config::CostCoefficients &kernelPrices() const { return untuned_.kernelPrices(); }

  /// How many times choose() searched for a config, because the class had changed.
  int changes() const { return changes_; }

  /// Allows from now on only configs for these kernels, which are loaded. A class without one gets this
  /// config.
  void pinKernels(const config::Config &config);
  /// The same with the kernels of the last ruling.
  void pinKernels() { pinKernels(config::Config(ruling_.config())); }

  /// The next tree begins a new run.
  void restart() { follower_.restart(); }

private:
  bool isStillRight(const TreeFeatures &features) const;
  const Ruling &ruleUntuned(const std::function<const tree::KvTree &()> &treeOf);

  std::shared_ptr<const ConfigCache> cache_;
  std::shared_ptr<const spec::Variant> variant_;
  Request request_;
  UntunedChooser untuned_;
  TreeClassifier classifier_;
  ClassFollower follower_;
  Ruling ruling_;
  bool hasRuling_ = false;
  int changes_ = 0;
  std::optional<Candidate> pinned_;
};

} // namespace deft::config_cache
