#include "runtime/config_cache/TreeClassifier.h"
#include "tools/deftc/common/Arguments.h"
#include "tools/deftc/common/Commands.h"
#include "tools/deftc/common/Numbers.h"
#include "tools/deftc/common/TreeInput.h"
#include "tuner/workload/Workload.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <array>
#include <cmath>
#include <ostream>

namespace deft::cli {

using config_cache::TreeClass;
using config_cache::TreeFeatures;
using nlohmann::json;

namespace {

constexpr char kClassifyFooter[] = R"(Examples:
  deftc classify tree.json
  deftc classify --workload few_shot --step 200
  deftc classify --workload few_shot --steps 400    (the classes that a run passes through)
A class is a bucket of trees for which one config is tuned and kept: `deftc explain` shows which.)";

struct ClassifyOptions {
  TreeOptions tree;
  int steps = 0; ///< 0: one tree
  bool asJson = false;
};

/// A line of the explanation: what was counted, and which counts have the same number in the class.
struct DimensionRow {
  const char *name;
  std::string counted, bucket;
};

/// The whole numbers that are rounded to 2^log2.
std::string wholeBucket(int log2) {
  const auto least = log2 == 0 ? 0LL : std::llround(std::ceil(std::exp2(log2 - 0.5)));
  const auto most = std::llround(std::floor(std::exp2(log2 + 0.5)));
  return least == most ? withSeparators(most) : withSeparators(least) + " to " + withSeparators(most);
}

std::array<DimensionRow, TreeClass::kDimensions> explain(const TreeFeatures &features,
                                                         const TreeClass &treeClass) {
  const auto share = [](int quarters) {
    return rounded(std::max(0.0, 25 * (quarters - 0.5)), 1) + " % to " +
           rounded(std::min(100.0, 25 * (quarters + 0.5)), 1) + " %";
  };
  return {{{"tokens", counted(features.tokens, "token", "tokens") + " that some query sees",
            wholeBucket(treeClass.tokens)},
           {"queries", counted(features.queries, "query", "queries"), wholeBucket(treeClass.queries)},
           {"sharing", rounded(features.sharing(), 2) + " queries see a token on average",
            (treeClass.sharing == 0 ? "1" : rounded(std::exp2(treeClass.sharing - 0.5), 2)) + " to " +
                rounded(std::exp2(treeClass.sharing + 0.5), 2)},
           {"depth", counted(features.levels, "level", "levels"), wholeBucket(treeClass.depth)},
           {"shorts",
            rounded(100 * features.shortShare(), 1) + " % of the tokens lie in nodes shorter than a tile",
            share(treeClass.shorts)}}};
}

void printClass(Context &context, const NamedTree &subject, const TreeFeatures &features) {
  const TreeClass treeClass = classOf(features);
  context.out << "class    " << treeClass.text() << ", " << familyName(familyOf(treeClass)) << "\ntree     "
              << subject.name << '\n';
  constexpr const char *kLetters = "tqsdf";
  const auto numbers = treeClass.numbers();
  const auto rows = explain(features, treeClass);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string name = std::string(1, kLetters[i]) + std::to_string(numbers[i]);
    context.out << rows[i].name << std::string(9 - std::string(rows[i].name).size(), ' ') << name
                << std::string(name.size() < 5 ? 5 - name.size() : 1, ' ') << rows[i].counted << " (of "
                << rows[i].bucket << ")\n";
  }
}

json classJson(const TreeFeatures &features) {
  const TreeClass treeClass = classOf(features);
  return {{"class", treeClass.text()},
          {"family", familyName(familyOf(treeClass))},
          {"tokens", features.tokens},
          {"path_tokens", features.pathTokens},
          {"queries", features.queries},
          {"sharing", features.sharing()},
          {"levels", features.levels},
          {"short_share", features.shortShare()},
          {"coordinates", features.coordinates()}};
}

/// Where a run goes: only steps whose class is another one than that of the step before.
int classifySteps(Context &context, const ClassifyOptions &options) {
  if (options.tree.workload.empty())
    return reportError(context, {support::ErrorCode::Usage, "--steps is for a --workload", ""});
  auto workload = openWorkload(context, options.tree);
  if (!workload)
    return reportError(context, workload.error());
  config_cache::TreeClassifier classifier;
  config_cache::ClassFollower follower;
  TreeClass last;
  json list = json::array();
  for (int i = 0; i < options.steps; ++i) {
    if (i > 0) {
      const auto moved = workload->next();
      if (!moved)
        return reportError(context, moved.error());
      if (!*moved)
        break;
    }
    const TreeClass now = follower.follow(classifier.measure(workload->tree()));
    if (i > 0 && now == last)
      continue;
    last = now;
    if (options.asJson)
      list.push_back({{"step", workload->step()}, {"class", now.text()}});
    else
      context.out << "step " << workload->step() << ": " << now.text() << ", " << familyName(familyOf(now))
                  << '\n';
  }
  if (options.asJson)
    context.out << list.dump(2) << '\n';
  return kExitOk;
}

int classify(Context &context, const ClassifyOptions &options) {
  if (options.steps > 0)
    return classifySteps(context, options);
  const auto subject = openTree(context, options.tree);
  if (!subject)
    return reportError(context, subject.error());
  const TreeFeatures features = config_cache::TreeClassifier().measure(subject->tree);
  if (!options.asJson) {
    printClass(context, *subject, features);
    return kExitOk;
  }
  json result = classJson(features);
  result["tree"] = subject->name;
  context.out << result.dump(2) << '\n';
  return kExitOk;
}

} // namespace

void addClassifyCommand(CLI::App &app, Context &context) {
  CLI::App *command = app.add_subcommand("classify", "Explain a tree's class for tuning");
  auto options = std::make_shared<ClassifyOptions>();
  addTreeOptions(*command, options->tree);
  command->add_option("TREE", options->tree.tree, "A tree file, as --tree")
      ->excludes("--tree")
      ->excludes("--workload");
  command
      ->add_option("--steps", options->steps, "Follow this many steps of the workload and list the changes")
      ->check(atLeast(1));
  command->add_flag("--json", options->asJson, "Print JSON");
  command->footer(kClassifyFooter);
  context.onRun(command, [&context, options] { return classify(context, *options); });
}

} // namespace deft::cli
