// Any bytes as a captured step: what is read is written and read again unchanged, and its tree can be laid
// out.
#include "runtime/capture/StepFile.h"
#include "runtime/capture/StepTree.h"
#include "tests/fuzz/Require.h"

#include <string_view>

using namespace deft;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  constexpr std::int64_t kMostTokens = 1 << 16; // of a cache that is laid out here
  const auto step = capture::parseStep(std::string_view(reinterpret_cast<const char *>(data), size));
  if (!step) {
    require(!step.error().message.empty(), "an error without a message");
    return 0;
  }
  const std::string text = capture::formatStep(*step);
  const auto again = capture::parseStep(text);
  require(again.ok(), again.ok() ? "" : "what was written is refused: " + again.error().message);
  require(capture::formatStep(*again) == text, "a step that its file changes");

  auto tree = capture::treeOf(*step);
  if (!tree) {
    require(!tree.error().message.empty(), "an error without a message");
    return 0;
  }
  if (tree->tokens() > kMostTokens)
    return 0;
  const auto place = capture::placeStep(*step, *tree);
  if (!place)
    return 0;
  const std::vector<int> &table = place->cache.pageTable;
  for (const tree::Node &node : tree->nodes())
    for (int t = 0; t < node.tokens && step->pageSize > 0; ++t) {
      const auto entry = static_cast<std::size_t>((node.location + t) / step->pageSize);
      require(entry < table.size() && table[entry] >= 0 && table[entry] < place->cache.poolPages,
              "a token that has no page");
    }
  return 0;
}
