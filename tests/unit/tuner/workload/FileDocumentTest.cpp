#include "compiler/support/AtomicFile.h"
#include "runtime/tree/TreeFile.h"
#include "tests/support/JsonBlocks.h"
#include "tuner/workload/RecordFile.h"

#include <gtest/gtest.h>

namespace deft::workload {
namespace {

TEST(FileDocumentTest, EveryExampleIsAFileThatIsRead) {
  const auto text = support::readFile(DEFT_TREES_DOCUMENT);
  ASSERT_TRUE(text) << text.error().message;
  int trees = 0, records = 0;
  for (const std::string &block : test::jsonBlocks(*text)) {
    if (block.find("\"deftc-tree\"") != std::string::npos) {
      const auto document = tree::parseTreeDocument(block);
      ASSERT_TRUE(document) << document.error().message << "\n" << block;
      EXPECT_EQ(tree::parseTreeDocument(tree::formatTree(*document))->names, document->names);
      ++trees;
    } else {
      const auto record = parseRecordFile(block);
      ASSERT_TRUE(record) << record.error().message << "\n" << block;
      ++records;
    }
  }
  EXPECT_EQ(trees, 2);
  EXPECT_EQ(records, 2);
}

} // namespace
} // namespace deft::workload
