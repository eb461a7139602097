#include "compiler/config/ConfigJson.h"
#include "compiler/support/AtomicFile.h"
#include "runtime/config_cache/ConfigFile.h"
#include "runtime/config_cache/Rules.h"
#include "runtime/config_cache/SparseFiles.h"
#include "runtime/config_cache/VariantLegality.h"
#include "tests/support/JsonBlocks.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace deft::config_cache {
namespace {

using testing::HasSubstr;

/// What is wrong with a file's entries for their own device; empty: nothing.
std::string faultsOf(const ConfigFile &file) {
  std::string faults;
  const target::Target *target = targetOf(file.device);
  for (const Entry &entry : file.entries) {
    const spec::Variant variant = entry.signature.variant();
    if (const auto judged = legalityFor(variant, target)(entry.config); !judged)
      faults += keyOf(entry) + ": " + judged.error().message + "\n";
  }
  return faults;
}

TEST(DocumentTest, ItsFileIsReadAndWrittenAsItStands) {
  const auto text = support::readFile(DEFT_CONFIGS_DOCUMENT);
  ASSERT_TRUE(text) << text.error().message;
  const std::vector<std::string> blocks = test::jsonBlocks(*text);
  ASSERT_EQ(blocks.size(), 3U);
  const FileReading reading = parseConfigFile(blocks[0], "CONFIGS.md");
  ASSERT_EQ(reading.state, FileState::Good) << reading.message;
  EXPECT_THAT(reading.file.notes, testing::IsEmpty());
  ASSERT_EQ(reading.file.entries.size(), 1U);
  EXPECT_EQ(formatConfigFile(reading.file), blocks[0] + "\n");
  EXPECT_EQ(faultsOf(reading.file), "");
  const auto single = config::configFromJson(nlohmann::json::parse(blocks[1]), config::DeviceKind::Gpu);
  ASSERT_TRUE(single) << single.error().message;
}

TEST(DocumentTest, ItsFileOfSparseLayersIsReadAndWrittenAsItStands) {
  const auto text = support::readFile(DEFT_CONFIGS_DOCUMENT);
  ASSERT_TRUE(text) << text.error().message;
  const std::string block = test::jsonBlocks(*text).back();
  const SparseReading reading = parseSparseFile(block, "CONFIGS.md");
  ASSERT_EQ(reading.state, FileState::Good) << reading.message;
  EXPECT_THAT(reading.file.notes, testing::IsEmpty());
  ASSERT_EQ(reading.file.entries.size(), 1U);
  EXPECT_EQ(formatSparseFile(reading.file), block + "\n");
}

TEST(DocumentTest, ItNamesEveryRuleAndTheLimit) {
  const auto text = support::readFile(DEFT_CONFIGS_DOCUMENT);
  for (const Rule rule : {Rule::Override, Rule::Exact, Rule::Sibling, Rule::Nearby, Rule::Heuristic})
    EXPECT_THAT(*text, HasSubstr("| `" + ruleName(rule) + "` |"));
  EXPECT_THAT(*text, HasSubstr("within a distance of " + std::to_string(static_cast<int>(kNearbyLimit))));
  EXPECT_EQ(kNearbyLimit, static_cast<int>(kNearbyLimit));
}

TEST(ShippedConfigsTest, EachFileIsWholeAndLegalAndNamedByItsDevice) {
  for (const auto &file : std::filesystem::recursive_directory_iterator(DEFT_SHIPPED_CONFIGS)) {
    if (!file.is_regular_file() || file.path().extension() != ".json")
      continue;
    SCOPED_TRACE(file.path());
    const FileReading reading = readConfigFile(file.path());
    ASSERT_EQ(reading.state, FileState::Good) << reading.message;
    EXPECT_THAT(reading.file.notes, testing::IsEmpty());
    EXPECT_EQ(faultsOf(reading.file), "");
    EXPECT_EQ(file.path().filename(), reading.file.device.fileName());
    EXPECT_EQ(*support::readFile(file.path()), formatConfigFile(reading.file)) << "not as deftc writes it";
  }
}

} // namespace
} // namespace deft::config_cache
