#include "compiler/support/AtomicFile.h"
#include "runtime/tree/BranchController.h"
#include "runtime/tree/TreeFile.h"
#include "tuner/workload/RecordFile.h"

#include <gtest/gtest.h>

namespace deft::workload {
namespace {

/// The blocks of a Markdown text that say ```json.
std::vector<std::string> jsonBlocks(const std::string &text) {
  const std::string open = "```json\n", close = "\n```";
  std::vector<std::string> blocks;
  for (std::size_t at = 0; (at = text.find(open, at)) != std::string::npos;) {
    at += open.size();
    const std::size_t end = text.find(close, at);
    blocks.push_back(text.substr(at, end - at));
    at = end;
  }
  return blocks;
}

TEST(FileDocumentTest, EveryExampleIsAFileThatIsRead) {
  const auto text = support::readFile(DEFT_TREES_DOCUMENT);
  ASSERT_TRUE(text) << text.error().message;
  int trees = 0, records = 0, scripts = 0;
  for (const std::string &block : jsonBlocks(*text)) {
    if (block.find("\"deftc-tree\"") != std::string::npos) {
      const auto document = tree::parseTreeDocument(block);
      ASSERT_TRUE(document) << document.error().message << "\n" << block;
      EXPECT_EQ(tree::parseTreeDocument(tree::formatTree(*document))->names, document->names);
      ++trees;
    } else if (block.find("\"deftc-branches\"") != std::string::npos) {
      const auto script = tree::parseScript(block);
      ASSERT_TRUE(script) << script.error().message << "\n" << block;
      EXPECT_EQ(tree::formatScript(*script), block + "\n"); // as it is written, too
      ++scripts;
    } else {
      const auto record = parseRecordFile(block);
      ASSERT_TRUE(record) << record.error().message << "\n" << block;
      ++records;
    }
  }
  EXPECT_EQ(trees, 2);
  EXPECT_EQ(records, 2);
  EXPECT_EQ(scripts, 1);
}

} // namespace
} // namespace deft::workload
