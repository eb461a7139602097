// Any bytes as a tree file: what is read is written and read again unchanged, and every partition makes a
// right plan of it.
#include "compiler/config/ConfigJson.h"
#include "compiler/spec/Names.h"
#include "runtime/config_cache/TreeClassifier.h"
#include "runtime/plan/Planner.h"
#include "runtime/plan/Verify.h"
#include "runtime/tree/CachePlacement.h"
#include "runtime/tree/TreeFile.h"
#include "runtime/tree/TreeSummary.h"
#include "tests/fuzz/Require.h"

#include <string_view>

using namespace deft;
using fuzz::require;

namespace {

/// Of these trees plans stay small: a path may have 2^30 tokens, and one in chunks would have millions of
/// items.
constexpr std::int64_t kMostTokens = 1 << 16;

config::Config twoPhases() {
  config::Config config;
  config.phases = {{"wide", 16, config::Family::Sm80, 64, 64, 3, 4},
                   {"narrow", -1, config::Family::Sm80, 16, 64, 4, 4}};
  return config;
}

void checkPlans(const tree::KvTree &tree) {
  plan::VariantFacts facts;
  facts.ratio = 4;
  facts.kvHeads = 2;
  config::Config config = twoPhases();
  for (const std::string &partition : spec::partitionNames()) {
    config.partition = *config::partitionFromName(partition);
    for (const int chunk : {0, 48}) {
      config.chunkTokens = chunk;
      const auto plan = plan::makePlan(tree, facts, config, 7);
      require(plan.ok(), partition + ": " + (plan.ok() ? "" : plan.error().message));
      const auto verified = plan::verify(*plan, tree, facts, config);
      require(verified.ok(), partition + ": " + (verified.ok() ? "" : verified.error().message));
    }
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const auto document = tree::parseTreeDocument(std::string_view(reinterpret_cast<const char *>(data), size));
  if (!document) {
    require(!document.error().message.empty(), "an error without a message");
    return 0;
  }
  const std::string text = tree::formatTree(*document);
  const auto again = tree::parseTreeDocument(text);
  require(again.ok(), again.ok() ? "" : "what was written is refused: " + again.error().message);
  require(tree::formatTree(*again) == text, "a tree that its file changes");

  tree::KvTree tree = document->tree;
  (void)tree::summarize(tree);
  (void)config_cache::classOf(config_cache::TreeClassifier().measure(tree));
  if (tree.tokens() <= kMostTokens && tree::placeInCache(tree, {.pageSize = 16}))
    checkPlans(tree);
  return 0;
}
