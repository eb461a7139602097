// classify, explain and cache, called as the program calls them, in a home of their own.
#include "compiler/config/ConfigJson.h"
#include "runtime/config_cache/FileLock.h"
#include "runtime/config_cache/TreeClassifier.h"
#include "runtime/module_cache/CubinCache.h"
#include "tests/support/RunDeftc.h"
#include "tests/support/SetVariable.h"
#include "tests/unit/runtime/config_cache/ConfigTesting.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"
#include "tuner/workload/Workload.h"

#include <chrono>
#include <ctime>
#include <filesystem>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

namespace deft::cli {
namespace {

using config_cache::Entry;
using module_cache::readText;
using module_cache::writeText;
using nlohmann::json;
using test::Outcome;
using test::runDeftc;
using testing::HasSubstr;
using testing::Not;

class CacheCommandTest : public testing::Test {
protected:
  CacheCommandTest()
      : cache_("DEFT_CACHE_DIR", folder_.path("cache")), configs_("DEFT_CONFIG_PATH", std::nullopt) {}

  std::string userPath(const config_cache::DeviceKey &device = config_cache::h200()) const {
    return folder_.path("cache/configs/" + device.fileName());
  }
  void write(const std::string &path, const std::vector<Entry> &entries,
             const config_cache::DeviceKey &device = config_cache::h200()) const {
    const auto report = mergeWrite(path, config_cache::Owner::Deftc, device, entries);
    ASSERT_TRUE(report) << report.error().message;
  }
  /// For llama3_8b on this workload at its first step.
  static Entry entryFor(const char *workload, int chunk = 256) {
    const auto made = workload::make(workload, 0);
    return config_cache::someEntry(config_cache::TreeClassifier().classify(made->tree()), chunk);
  }

  module_cache::TestFolder folder_;
  test::SetVariable cache_, configs_;
};

TEST_F(CacheCommandTest, EveryCommandHasHelpWithAnExample) {
  for (const char *command : {"list", "show", "verify", "merge", "prune", "regret", "renew"}) {
    const Outcome help = runDeftc({"cache", command, "--help"});
    EXPECT_EQ(help.code, kExitOk);
    EXPECT_THAT(help.out, testing::ContainsRegex(std::string("Examples?:\n  deftc cache ") + command));
  }
}

TEST_F(CacheCommandTest, AnEmptyHomeSaysHowToFillIt) {
  const Outcome list = runDeftc({"cache", "list"});
  EXPECT_EQ(list.code, kExitOk);
  EXPECT_THAT(list.out, HasSubstr("there are no configs; `deftc tune` makes some"));
  EXPECT_THAT(list.out, HasSubstr("user " + folder_.path("cache/configs")));
  EXPECT_EQ(runDeftc({"cache", "list", "--json"}).out, "[]\n");
  EXPECT_THAT(runDeftc({"cache", "show"}).out, HasSubstr("no entry matches"));
  EXPECT_EQ(runDeftc({"cache", "verify"}).code, kExitOk);
  EXPECT_EQ(runDeftc({"cache", "prune", "--stale"}).code, kExitOk);
  EXPECT_EQ(runDeftc({"cache"}).code, kExitUsage);
  EXPECT_FALSE(std::filesystem::exists(folder_.path("cache"))); // looking makes nothing
}

TEST_F(CacheCommandTest, WhatWasCutShortOrIsNotTrustedIsTold) {
  Entry cut = entryFor("few_shot");
  cut.isComplete = false;
  write(userPath(), {cut, entryFor("no_sharing")});
  EXPECT_THAT(runDeftc({"cache", "list"}).out, HasSubstr("2 entries, 1 cut short"));
  EXPECT_EQ(json::parse(runDeftc({"cache", "list", "--json"}).out)[0]["cut_short"], 1);
  EXPECT_THAT(runDeftc({"cache", "show"}).out, HasSubstr("3 trees; cut short"));

  std::filesystem::permissions(folder_.path("cache/configs"), std::filesystem::perms::all);
  EXPECT_THAT(runDeftc({"cache", "list"}).out, HasSubstr("untrusted, not used"));
  const Outcome verified = runDeftc({"cache", "verify"});
  EXPECT_EQ(verified.code, kExitDiagnostics);
  EXPECT_THAT(verified.out, HasSubstr(folder_.path("cache/configs") + "`: other users may write it"));
}

TEST_F(CacheCommandTest, ListAndShowTellWhatIsThere) {
  Entry stale = entryFor("no_sharing");
  stale.provenance.kernelHash = "old";
  stale.keepsDefault = true;
  write(userPath(), {entryFor("few_shot"), stale});
  writeText(folder_.path("cache/configs/broken.json"), "{");
  const Outcome list = runDeftc({"cache", "list"});
  EXPECT_THAT(list.out, HasSubstr("NVIDIA H200 (sm_90, 132 multiprocessors): 2 entries, 1 stale"));
  EXPECT_THAT(list.out, HasSubstr("broken, not used"));
  const json files = json::parse(runDeftc({"cache", "list", "--json"}).out);
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[1]["entries"], 2);
  EXPECT_EQ(files[1]["origin"], "user");
  EXPECT_EQ(files[0]["state"], "broken");

  const Outcome show = runDeftc({"cache", "show"});
  EXPECT_THAT(show.out, HasSubstr("q32-kv8-d128-bf16-p16nhd-plain\n"));
  EXPECT_THAT(show.out,
              HasSubstr("few-shot: 20.5 us, untuned 25.6 us, 1.25 times as fast; +-1.0 %, 3 trees\n"));
  EXPECT_THAT(show.out, HasSubstr("no sharing: 20.5 us, the untuned choice stays; +-1.0 %, 3 trees; stale"));
  EXPECT_THAT(show.out, HasSubstr("node_chunk, chunk 256; wide 64 rows x 64 tokens"));
  EXPECT_THAT(runDeftc({"cache", "show", "h200", "--family", "few"}).out, Not(HasSubstr("no sharing")));
  EXPECT_THAT(runDeftc({"cache", "show", "h100"}).out, HasSubstr("no entry matches"));
  EXPECT_THAT(runDeftc({"cache", "show", "--variant", "q64"}).out, HasSubstr("no entry matches"));
  EXPECT_EQ(json::parse(runDeftc({"cache", "show", "--json"}).out).size(), 2U);
}

TEST_F(CacheCommandTest, ExplainTellsTheRuleTheFileAndWhatComesNext) {
  Entry illegal = entryFor("few_shot");
  illegal.signature.tensors = spec::Tensors::alike(128, spec::DType::F16);
  illegal.config.phases[0].tileQ = 24;
  write(userPath(), {entryFor("few_shot", 512), illegal});
  for (const std::vector<std::string> &command :
       {std::vector<std::string>{"explain"}, {"cache", "explain"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"llama3_8b", "--workload", "few_shot", "--device", "h200"});
    const Outcome outcome = runDeftc(arguments);
    ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("variant   q32-kv8-d128-bf16-p16nhd-plain\n"));
    EXPECT_THAT(outcome.out, HasSubstr("c1-t12-q4-s4-d1-f0, few-shot (about 4,096 tokens"));
    EXPECT_THAT(outcome.out, HasSubstr("device    NVIDIA H200 (sm_90, 132 multiprocessors)\n"));
    EXPECT_THAT(outcome.out, HasSubstr("config    node_chunk, chunk 512; wide 64 rows"));
    EXPECT_THAT(outcome.out, HasSubstr("rule      exact: tuned for this class on this device, 1.25 times"));
    EXPECT_THAT(outcome.out, HasSubstr("file      " + userPath() + "\n"));
    EXPECT_THAT(outcome.out,
                HasSubstr("next\n  heuristic chosen by the cost model: ")); // something was tuned
    EXPECT_THAT(outcome.out, HasSubstr(" us by the model with items of "));
    EXPECT_THAT(outcome.out, HasSubstr("tile_q is 24, not a positive multiple of 16"));
  }
  const json told = json::parse(
      runDeftc({"explain", "llama3_8b", "--workload", "few_shot", "--device", "h200", "--json"}).out);
  EXPECT_EQ(told["chosen"]["rule"], "exact");
  EXPECT_EQ(told["device"]["name"], "NVIDIA H200");
  EXPECT_EQ(told["family"], "few-shot");
  EXPECT_EQ(told["rejected"].size(), 1U);
}

TEST_F(CacheCommandTest, ExplainWithoutFilesIsTheHeuristic) {
  const Outcome outcome = runDeftc({"explain", "llama3_8b", "--workload", "few_shot", "--backend", "cpu"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("rule      heuristic: no tuned config; chosen by the cost model\n"));
  EXPECT_EQ(runDeftc({"explain", "llama3_8b"}).code, kExitUsage);
  const Outcome unknown = runDeftc({"explain", "llama3_8b", "--workload", "few_shot", "--device", "h200"});
  EXPECT_EQ(unknown.code, kExitUsage);
  EXPECT_THAT(unknown.err, HasSubstr("there are no configs for a device `h200`"));
}

TEST_F(CacheCommandTest, PlanTakesAConfigOfTheNamedDeviceAndOfAFile) {
  write(userPath(), {entryFor("few_shot", 512)});
  const auto planOf = [](const std::vector<std::string> &more) {
    std::vector<std::string> arguments{"plan", "llama3_8b", "--workload", "few_shot", "--as", "json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = runDeftc(arguments);
    EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
    return json::parse(outcome.out);
  };
  const json tuned = planOf({"--device", "h200"});
  EXPECT_EQ(tuned["selection"]["chosen"]["rule"], "exact");
  EXPECT_EQ(tuned["partition"], "node_chunk");
  EXPECT_EQ(tuned["load"]["blocks"], 264);
  writeText(folder_.path("one.json"), config::toJson(config_cache::someConfig(64)).dump());
  const json given = planOf({"--backend", "cpu", "--config", folder_.path("one.json")});
  EXPECT_EQ(given["selection"]["chosen"]["rule"], "override");
  EXPECT_EQ(given["config"]["chunk_tokens"], 64);
  const Outcome text = runDeftc({"plan", "llama3_8b", "--workload", "few_shot", "--device", "h200"});
  EXPECT_THAT(text.out, HasSubstr("config     exact: tuned for this class on this device"));
}

TEST_F(CacheCommandTest, AConfigFileThatCannotBeUsedIsAnError) {
  const std::string path = folder_.path("given.json");
  const auto plan = [&] {
    return runDeftc({"plan", "llama3_8b", "--workload", "few_shot", "--backend", "cpu", "--config", path});
  };
  const auto errorOf = [&] {
    const Outcome outcome = plan();
    EXPECT_EQ(outcome.code, kExitUsage);
    return outcome.err;
  };
  const Outcome absent = plan();
  EXPECT_EQ(absent.code, kExitEnvironment);
  EXPECT_THAT(absent.err, HasSubstr("given.json`: No such file or directory"));
  for (const std::vector<std::string> &command :
       {std::vector<std::string>{"explain", "llama3_8b", "--workload", "few_shot"},
        {"cache", "regret"},
        {"cache", "renew", "llama3_8b", "--dry-run"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"--backend", "cpu", "--config", path});
    const Outcome outcome = runDeftc(arguments);
    EXPECT_EQ(outcome.code, kExitEnvironment) << command.front() << ' ' << command[1];
    EXPECT_THAT(outcome.err, HasSubstr("given.json`: No such file or directory"));
  }
  writeText(path, R"({"partition": "diagonal"})");
  EXPECT_THAT(errorOf(), HasSubstr("diagonal"));
  writeText(path, R"({"format": "deftc-configs", "version": 7})");
  EXPECT_THAT(errorOf(), HasSubstr("version"));
  writeText(path, "{");
  EXPECT_THAT(errorOf(), HasSubstr("given.json"));
  config::Config unusable = config_cache::someConfig();
  for (config::PhaseConfig &phase : unusable.phases)
    phase.tileQ = 1; // a query has more rows
  writeText(path, config::toJson(unusable).dump());
  EXPECT_THAT(errorOf(), HasSubstr("given.json` cannot be used: "));
  const Outcome run = runDeftc(
      {"run", DEFT_TEST_PACKAGE, "--workload", "few_shot:prompt=100", "--backend", "cpu", "--config", path});
  EXPECT_EQ(run.code, kExitUsage);
  EXPECT_THAT(run.err, HasSubstr("given.json` cannot be used: "));
}

/// An entry for the package's attention, on this processor with two threads.
Entry cpuEntry(const char *workload, int chunk) {
  Entry entry = config_cache::someEntry(
      config_cache::TreeClassifier().classify(workload::make(workload, 0)->tree()), chunk);
  entry.signature = *config_cache::VariantSignature::parse("q4-kv2-d64-bf16-p16nhd-plain");
  entry.provenance.kernelHash = config_cache::kernelHash(config_cache::DeviceKey::Kind::Cpu, {});
  return entry;
}

TEST_F(CacheCommandTest, RunTakesTheTunedConfigAndSaysWhy) {
  const config_cache::DeviceKey cpu = config_cache::DeviceKey::ofCpu(2);
  write(userPath(cpu), {cpuEntry("few_shot:prompt=500,branches=8", 96)}, cpu);
  const std::string path = folder_.path("report.json");
  const auto run = [&](const std::vector<std::string> &more) {
    std::vector<std::string> arguments{"run", DEFT_TEST_PACKAGE, "--backend", "cpu",     "--threads",
                                       "2",   "--repeat",        "1",         "--check", "--json",
                                       path};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = runDeftc(arguments);
    EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
    return outcome.out;
  };
  const std::string tuned = run({"--workload", "few_shot:prompt=500,branches=8"});
  EXPECT_THAT(tuned, HasSubstr("\nconfig   node_chunk, chunk 96; "));
  EXPECT_THAT(tuned, HasSubstr("\nchosen   exact: tuned for this class on this device, 1.25 times as fast as "
                               "untuned; class c1-t9-q3-s3-d1-f0, few-shot\n"));
  const json report = json::parse(readText(path));
  EXPECT_EQ(report["selection"]["chosen"]["path"], userPath(cpu));
  EXPECT_EQ(report["config"]["chunk_tokens"], 96);

  const std::string asked = run({"--workload", "few_shot:prompt=500,branches=8", "--chunk", "32"});
  EXPECT_THAT(asked, HasSubstr("few-shot; with your changes\n"));
  EXPECT_EQ(json::parse(readText(path))["config"]["chunk_tokens"], 32);
  EXPECT_THAT(run({"--workload", "no_sharing:requests=3"}),
              HasSubstr("\nchosen   heuristic: no tuned config"));
}

TEST_F(CacheCommandTest, ARunOfManyStepsTellsTheConfigOfTheLast) {
  const config_cache::DeviceKey cpu = config_cache::DeviceKey::ofCpu(2);
  write(userPath(cpu),
        {cpuEntry("few_shot:prompt=100,branches=4", 96),
         cpuEntry("few_shot:prompt=100,branches=4,step=150", 64)},
        cpu);
  const Outcome outcome =
      runDeftc({"run", DEFT_TEST_PACKAGE, "--backend", "cpu", "--threads", "2", "--repeat", "1", "--workload",
                "few_shot:prompt=100,branches=4", "--steps", "150", "--json", "-"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  const json report = json::parse(outcome.out);
  EXPECT_EQ(report["selection"]["chosen"]["rule"], "exact");
  EXPECT_EQ(report["config"]["chunk_tokens"], 64);
}

TEST_F(CacheCommandTest, VerifyFindsWhatIsWrong) {
  write(userPath(), {entryFor("few_shot")});
  EXPECT_EQ(runDeftc({"cache", "verify"}).code, kExitOk);
  EXPECT_THAT(runDeftc({"cache", "verify"}).out, HasSubstr(": ok, 1 entry of NVIDIA H200"));
  Entry illegal = entryFor("no_sharing");
  illegal.config.phases[1].stages = 9;
  write(userPath(), {illegal});
  const Outcome outcome = runDeftc({"cache", "verify"});
  EXPECT_EQ(outcome.code, kExitDiagnostics);
  EXPECT_THAT(outcome.out, HasSubstr("stages is 9, not between 2 and 8"));
  const std::string text = readText(userPath());
  writeText(folder_.path("part.json"), text.substr(0, text.size() / 2));
  EXPECT_EQ(runDeftc({"cache", "verify", folder_.path("part.json")}).code, kExitDiagnostics);
  const Outcome both = runDeftc({"cache", "verify", folder_.path("nowhere.json"), folder_.path("part.json")});
  EXPECT_EQ(both.code, kExitEnvironment);
  EXPECT_THAT(both.err, HasSubstr("nowhere.json"));
  EXPECT_THAT(both.out, HasSubstr("part.json")) << "what is there is looked at";
  std::filesystem::rename(userPath(), folder_.path("cache/configs/other.json"));
  EXPECT_THAT(runDeftc({"cache", "verify"}).out, HasSubstr("it should be called sm_90-132-nvidia_h200.json"));
}

TEST_F(CacheCommandTest, MergeDoesNotDependOnTheOrderAndRefusesToMix) {
  const std::string a = folder_.path("a.json"), b = folder_.path("b.json"),
                    other = folder_.path("other.json");
  write(a, {entryFor("few_shot", 128)});
  write(b, {entryFor("no_sharing", 256)});
  write(other, {entryFor("no_sharing")}, config_cache::h100());
  const Outcome ab = runDeftc({"cache", "merge", a, b, "-o", "-"}),
                ba = runDeftc({"cache", "merge", b, a, "-o", "-"});
  EXPECT_EQ(ab.code, kExitOk) << ab.err;
  EXPECT_EQ(ab.out, ba.out);
  EXPECT_EQ(json::parse(ab.out)["entries"].size(), 2U);
  const Outcome mixed = runDeftc({"cache", "merge", a, other, "-o", "-"});
  EXPECT_EQ(mixed.code, kExitUsage);
  EXPECT_THAT(mixed.err, HasSubstr("do not mix"));
  EXPECT_EQ(runDeftc({"cache", "merge", a, folder_.path("nowhere.json"), "-o", "-"}).code, kExitEnvironment);

  json file = json::parse(ab.out);
  for (int i = 0; i < 2; ++i) // twice the same that is not understood
    file["entries"].push_back({{"unknown", 1}});
  const std::string strange = folder_.path("strange.json");
  writeText(strange, file.dump());
  EXPECT_EQ(runDeftc({"cache", "merge", strange, "-o", "-"}).out,
            runDeftc({"cache", "merge", strange, strange, "-o", "-"}).out);

  // What is no such file, or another device's, is not overwritten; one of this device's is.
  writeText(folder_.path("mine.deft"), "attention a {}");
  for (const std::string &output : {folder_.path("mine.deft"), other}) {
    const std::string before = readText(output);
    EXPECT_NE(runDeftc({"cache", "merge", a, b, "-o", output}).code, kExitOk);
    EXPECT_EQ(readText(output), before);
  }
  EXPECT_EQ(runDeftc({"cache", "merge", a, b, "-o", b}).code, kExitOk); // it holds all that was in it
  EXPECT_EQ(readText(b), ab.out);

  const Outcome own = runDeftc({"cache", "merge", a, b});
  EXPECT_EQ(own.code, kExitOk) << own.err;
  EXPECT_THAT(own.out, HasSubstr("2 entries added, 0 replaced, 0 already there or better"));
  EXPECT_EQ(readText(userPath()), ab.out);
}

TEST_F(CacheCommandTest, AMergeWaitsForWhoeverWritesItsOutput) {
  const std::string a = folder_.path("a.json"), b = folder_.path("b.json"), more = folder_.path("more.json");
  write(a, {entryFor("few_shot")});
  write(b, {entryFor("no_sharing")});
  write(more, {entryFor("no_sharing"), entryFor("reasoning")});
  std::optional lock = config_cache::FileLock::ofFile(b);
  auto merge = std::async(std::launch::async, [&] { return runDeftc({"cache", "merge", a, b, "-o", b}); });
  std::this_thread::sleep_for(std::chrono::milliseconds(300)); // as long as a merge takes many times over
  writeText(b, readText(more));
  lock.reset();
  const Outcome merged = merge.get();
  EXPECT_EQ(merged.code, kExitOk) << merged.err;
  EXPECT_EQ(json::parse(readText(b))["entries"].size(), 3U) << "those of a, and what came meanwhile";
}

TEST_F(CacheCommandTest, PruneRemovesWhatIsNamedAndNoMore) {
  Entry stale = entryFor("no_sharing"), illegal = entryFor("reasoning");
  stale.provenance.kernelHash = "old";
  illegal.config.phases[1].stages = 9;
  write(userPath(), {entryFor("few_shot"), stale, illegal});
  const std::string before = readText(userPath());
  EXPECT_EQ(runDeftc({"cache", "prune"}).code, kExitUsage);
  EXPECT_THAT(runDeftc({"cache", "prune", "--all", "--dry-run"}).out,
              HasSubstr("3 entries would be removed, 0 left"));
  EXPECT_EQ(readText(userPath()), before);
  EXPECT_THAT(runDeftc({"cache", "prune", "--stale"}).out, HasSubstr("1 entry removed, 2 left"));
  EXPECT_THAT(runDeftc({"cache", "prune", "--illegal"}).out, HasSubstr("1 entry removed, 1 left"));
  EXPECT_THAT(runDeftc({"cache", "prune", "--all", "--variant", "q64"}).out,
              HasSubstr("0 entries removed, 1 left"));
  EXPECT_THAT(runDeftc({"cache", "prune", "--all"}).out, HasSubstr("1 entry removed, 0 left\n"));
  json file = json::parse(before);
  file["entries"][0]["class"] = "c9-whatever";
  writeText(userPath(), file.dump());
  EXPECT_THAT(runDeftc({"cache", "prune", "--all"}).out,
              HasSubstr("2 entries removed, 0 left, beside 1 that is not understood\n"));
  EXPECT_EQ(runDeftc({"cache", "prune", "--all", folder_.path("nowhere.json")}).code, kExitEnvironment);
}

TEST_F(CacheCommandTest, CompiledKernelsAreAnotherCacheThatIsListedAndPruned) {
  EXPECT_THAT(runDeftc({"cache", "kernels", "list"}).out,
              testing::StartsWith("0 compiled kernels, 0.0 kB, in " + folder_.path("cache/")));
  const auto cache = module_cache::CubinCache::open(folder_.path("cache"));
  const std::string whole(64, 'a'), torn(64, 'b');
  cache->store(whole, "// k: attention `a`, phase tiles.\n", {"cubin", {.entry = "k", .registers = 168}});
  cache->store(torn, "// k: attention `b`, phase tiles.\n", {"cubin", {.entry = "k", .registers = 96}});
  writeText(cache->folder() + "/" + torn + "/kernel.cubin", "cub");

  EXPECT_THAT(runDeftc({"cache", "list"}).out, HasSubstr("kernels    2 compiled kernels, "));
  const Outcome list = runDeftc({"cache", "kernels", "list"});
  EXPECT_THAT(list.out, HasSubstr("   168 registers"));
  EXPECT_THAT(list.out, HasSubstr("  aaaaaaaaaaaa  k: attention `a`, phase tiles.\n"));
  const json array = json::parse(runDeftc({"cache", "kernels", "list", "--json"}).out);
  EXPECT_EQ(array["folder"], cache->folder());
  EXPECT_EQ(array["kernels"].size(), 2u);

  const Outcome nothing = runDeftc({"cache", "kernels", "prune"});
  EXPECT_EQ(nothing.code, kExitUsage);
  EXPECT_THAT(nothing.err, HasSubstr("give --older-than DAYS, --broken or --all"));
  EXPECT_THAT(runDeftc({"cache", "kernels", "prune", "--broken", "--dry-run"}).out,
              HasSubstr("1 kernel of "));
  EXPECT_THAT(runDeftc({"cache", "kernels", "prune", "--broken"}).out, HasSubstr(" removed, 1 left\n"));
  EXPECT_TRUE(cache->find(whole));
  // Nobody reads kernels that others may write, but they are not broken for that.
  std::filesystem::permissions(cache->folder(), std::filesystem::perms::group_write,
                               std::filesystem::perm_options::add);
  const Outcome untrusted = runDeftc({"cache", "kernels", "prune", "--broken"});
  EXPECT_EQ(untrusted.code, kExitEnvironment);
  EXPECT_THAT(untrusted.err, HasSubstr("other users may write it"));
  std::filesystem::permissions(cache->folder(), std::filesystem::perms::group_write,
                               std::filesystem::perm_options::remove);
  EXPECT_TRUE(cache->find(whole));
  EXPECT_THAT(runDeftc({"cache", "kernels", "prune", "--older-than", "1"}).out,
              HasSubstr("0 kernels of 0.0 kB removed, 1 left\n"));
  EXPECT_THAT(runDeftc({"cache", "kernels", "prune", "--all"}).out, HasSubstr("1 kernel of "));
  EXPECT_FALSE(cache->find(whole));
}

TEST_F(CacheCommandTest, SixHundredEntriesAreListedInNoTime) {
  std::vector<Entry> entries;
  for (int queries = 0; queries < 30; ++queries)
    for (int tokens = 0; tokens < 20; ++tokens) {
      Entry entry = entryFor("few_shot");
      entry.treeClass.queries = queries;
      entry.treeClass.tokens = tokens;
      entries.push_back(std::move(entry));
    }
  write(userPath(), entries);
  const std::clock_t start = std::clock();
  const Outcome list = runDeftc({"cache", "list"});
  [[maybe_unused]] const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_THAT(list.out, HasSubstr("600 entries"));
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  EXPECT_LT(seconds, 0.4) << "of the processor, with about as many that are shipped";
#endif
}

TEST_F(CacheCommandTest, RegretTellsWhatTheRulesWouldHaveChosen) {
  write(userPath(), {entryFor("few_shot", 512)});
  const Outcome outcome = runDeftc({"cache", "regret", "--device", "h200"});
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("heuristic: 25.0 %"));
  EXPECT_THAT(outcome.out,
              HasSubstr("rule heuristic: 1 time timed, 1 of them chosen; regret 25.0 % in the median"));
  EXPECT_EQ(json::parse(runDeftc({"cache", "regret", "--device", "h200", "--json"}).out)["rows"].size(), 1U);
}

TEST_F(CacheCommandTest, ClassifyExplainsEachNumber) {
  const Outcome outcome = runDeftc({"classify", "--workload", "few_shot", "--step", "100"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("class    c1-t13-q4-s4-d1-f0, few-shot\ntree     few_shot, step 100\n"));
  EXPECT_THAT(outcome.out,
              HasSubstr("tokens   t13  6,000 tokens that some query sees (of 5,793 to 11,585)\n"));
  EXPECT_THAT(outcome.out, HasSubstr("queries  q4   20 queries (of 12 to 22)\n"));
  EXPECT_THAT(outcome.out, HasSubstr("depth    d1   2 levels (of 2)\n"));
  const json told = json::parse(runDeftc({"classify", "--workload", "few_shot", "--json"}).out);
  EXPECT_EQ(told["class"], "c1-t12-q4-s4-d1-f0");
  EXPECT_EQ(told["family"], "few-shot");
  const std::string tree = folder_.path("tree.json");
  writeText(tree, R"({"format": "deftc-tree", "version": 1, "nodes": [], "queries": []})");
  EXPECT_THAT(runDeftc({"classify", tree}).out, HasSubstr("class    c1-t0-q0-s0-d0-f0, no sharing"));
  EXPECT_EQ(runDeftc({"classify"}).code, kExitUsage);
  EXPECT_EQ(runDeftc({"classify", tree, "--steps", "3"}).code, kExitUsage);
  EXPECT_EQ(runDeftc({"classify", tree, "--workload", "few_shot"}).code, kExitUsage);
}

TEST_F(CacheCommandTest, ClassifyFollowsARun) {
  const Outcome outcome = runDeftc({"classify", "--workload", "few_shot", "--steps", "400"});
  EXPECT_EQ(outcome.code, kExitOk);
  EXPECT_THAT(outcome.out, testing::StartsWith("step 1: c1-t12-q4-s4-d1-f0, few-shot\nstep 126: c1-t13-"));
  const json told =
      json::parse(runDeftc({"classify", "--workload", "few_shot", "--steps", "999", "--json"}).out);
  EXPECT_EQ(told[0]["step"], 1);
  EXPECT_LT(told.size(), 10U);
}

} // namespace
} // namespace deft::cli
