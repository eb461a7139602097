#pragma once

#include "runtime/config_cache/TreeClassifier.h"
#include "runtime/config_cache/UntunedChooser.h"
#include "runtime/config_cache/VariantLegality.h"

#include <functional>
#include <memory>
#include <optional>

namespace deft::config_cache {

/// Whether plans of the one can be run by the other's kernels, if not as fast.
bool haveSameTiles(const config::Config &a, const config::Config &b);

/// Whether two configs run by the same kernels: then they differ only in how plans are made.
bool haveSameKernels(const config::Config &a, const config::Config &b);

/// Gives each step of a run its config. As long as the tree stays in its class, or near its edge, nothing is
/// looked up and nothing is allocated. What the tree would get untuned is worked out, by plans, only where
/// that is what it gets. For one thread at a time.
class ConfigChooser {
public:
  /// `untuned` are the configs among which rule `heuristic` chooses by the tree, on a device of so many
  /// multiprocessors. The target (null: the processor) must outlive the chooser.
  ConfigChooser(std::shared_ptr<const ConfigCache> cache, std::shared_ptr<const spec::Variant> variant,
                const target::Target *target, std::vector<config::Config> untuned, int units);
  /// With a single untuned config, whatever the tree.
  ConfigChooser(std::shared_ptr<const ConfigCache> cache, std::shared_ptr<const spec::Variant> variant,
                const target::Target *target, config::Config untuned)
      : ConfigChooser(std::move(cache), std::move(variant), target,
                      std::vector<config::Config>{std::move(untuned)}, 0) {}

  /// What the mask shows, where its parameters have other values than the defaults. The next tree begins a
  /// new run.
  void setReach(const plan::Reach &reach);

  /// For the tree as it is now; valid until the next call. Says nothing of what would come next.
  const Ruling &choose(const tree::KvTree &tree);
  /// For a tree whose features are known.
  const Ruling &choose(const tree::KvTree &tree, const TreeFeatures &features);
  /// For one that is made where plans of it are to be compared.
  const Ruling &choose(const std::function<const tree::KvTree &()> &treeOf, const TreeFeatures &features);

  /// As choose(), with all that would come next, the untuned choice at last.
  const Ruling &explain(const tree::KvTree &tree);

  /// What was chosen last; of a new chooser, the heuristic's.
  const Ruling &ruling() const { return ruling_; }

  /// By which kernels are compared where nothing is tuned.
  const config::CostCoefficients &kernelPrices() const { return untuned_.kernelPrices(); }

  /// How often choose() has looked for a config, because the class was another one than before.
  int changes() const { return changes_; }

  /// From now on, only configs that run by these kernels, which are loaded. A class that has none gets this
  /// very config.
  void pinKernels(const config::Config &config);
  /// To the kernels of what was chosen last.
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
