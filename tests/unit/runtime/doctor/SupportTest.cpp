#include "runtime/doctor/Support.h"

#include "runtime/doctor/Declared.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

namespace deft::doctor {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

json rowOf(const json &table, const std::string &feature) {
  for (const json &row : table["attention"])
    if (row["feature"] == feature)
      return row;
  return {};
}

TEST(SupportTest, EveryFeatureIsAValidSpecThatProcessorsRun) {
  const json table = supportTable();
  std::set<std::string> names;
  for (const json &row : table["attention"]) {
    EXPECT_TRUE(names.insert(row["feature"]).second) << row["feature"];
    EXPECT_TRUE(row["cpu"]["ok"]) << row["feature"] << ": " << row["cpu"].value("why", "");
  }
}

TEST(SupportTest, ARefusalHasTheErrorThatAUserGets) {
  const json cell = rowOf(supportTable(), "key_fp8")["gpus"]["sm_90a"];
  EXPECT_FALSE(cell["ok"]);
  EXPECT_THAT(cell["why"].get<std::string>(), HasSubstr("key"));
}

TEST(SupportTest, CellsNameTheFamilyAndTheRunsOnRecord) {
  const json row = rowOf(supportTable(), "latent");
  EXPECT_EQ(row["gpus"]["sm_90a"]["by"], json::array({"sm90_latent"}));
  EXPECT_EQ(row["gpus"]["sm_80"]["by"], json::array({"sm80_latent"}));
  EXPECT_EQ(row["gpus"]["sm_90a"]["seen"][0]["card"], "H200");
  EXPECT_EQ(row["gpus"]["sm_80"]["seen"], json::array());
}

TEST(SupportTest, AnEnginesFeatureHasTheRunsOnRecord) {
  const json engines = supportTable()["engines"];
  for (const json &row : engines["vLLM"]["features"]) {
    if (row["feature"] == "mla") {
      EXPECT_EQ(row["seen"][0]["card"], "H200");
    }
    if (row["feature"] == "alibi") {
      EXPECT_EQ(row["seen"], json::array());
    }
  }
  EXPECT_THAT(supportPage(), HasSubstr("| tensor parallelism | tested with stand-ins | H100, H200 |"));
}

TEST(SupportTest, EveryRunOnRecordIsInACell) {
  const json table = supportTable();
  std::size_t shown = 0, onRecord = 0;
  for (const json &row : table["attention"])
    for (const json &cell : row["gpus"])
      shown += cell["seen"].size();
  for (const json &engine : table["engines"])
    for (const json &row : engine["features"])
      shown += row["seen"].size();
  for (const json &runs : json::parse(kSeen))
    onRecord += runs.size();
  EXPECT_EQ(shown, onRecord);
}

TEST(SupportTest, EveryRefusalOfAnEngineHasItsError) {
  const json engines = supportTable()["engines"];
  EXPECT_EQ(engines.size(), 2u);
  for (const auto &[name, engine] : engines.items())
    for (const json &row : engine["features"])
      EXPECT_EQ(row["state"] == "no", row.contains("why")) << name << ": " << row;
}

TEST(SupportTest, ThePageNumbersEachErrorOnce) {
  const std::string page = supportPage();
  EXPECT_THAT(page, StartsWith("# Support\n"));
  const std::string errors = page.substr(page.find("## Errors"));
  std::set<std::string> texts;
  std::istringstream lines(errors.substr(errors.find('\n') + 2));
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(texts.insert(line.substr(line.find(' '))).second) << line;
  EXPECT_FALSE(texts.empty());
}

TEST(SupportTest, TheDocumentIsThisPage) {
  std::ifstream file(DEFT_SUPPORT_DOCUMENT);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(text, supportPage()) << "`tools/docs support` writes docs/support.md anew";
}

} // namespace
} // namespace deft::doctor
