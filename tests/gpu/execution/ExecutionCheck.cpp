/// How plans and runs behave on a GPU, as a server uses them: a graph that is replayed while the tree
/// changes, stale plans, threads and streams, plans made ahead, full rooms, lengths and drafts' trees that
/// only the device has, several GPUs at once; and what they cost on the host.
///
///   execution_check PACKAGE[:ATTENTION]... [--gpu N] [--config FILE [--deals]] [--json FILE] [--commit ID]
///   [--no-times]
///
/// On every GPU that is there. With a config of order `mixed` and light blocks plans deal tokens to warps:
/// the growing tree has enough rows for that, and `--deals` asks that it is so. Every result is compared with
/// the oracle. Takes some seconds a package. Ends with 1 where something is wrong, with 77 where there is no
/// GPU (3 with DEFT_REQUIRE_GPU=1).

#include "tests/gpu/execution/Checks.h"
#include "tests/support/CommandLine.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>

namespace deft::gpu_test {
namespace {

using nlohmann::json;

struct Check {
  const char *name;
  json (*run)(const Subject &, Findings &);
  bool isTiming;
};

constexpr Check kChecks[] = {
    {"growing_tree", checkGrowingTree, false},
    {"stale_plans", checkStalePlans, false},
    {"threads", checkThreads, false},
    {"planning_ahead", checkPlanningAhead, false},
    {"room", checkRoom, false},
    {"lengths", checkLengths, false},
    {"drafts", checkDrafts, false},
    {"merged_states", checkMergedStates, false},
    {"told_pages", checkToldPages, false},
    {"host_times", measureHost, true},
    {"watch_times", measureWatch, true},
    {"draft_times", measureDrafts, true},
    {"layout_times", measureLayouts, true},
};

/// Runs one check and tells of it; returns how much was wrong.
int report(const char *name, const std::function<json(Findings &)> &check, json &entry) {
  Findings findings;
  json facts;
  const double us = timeUs([&] {
    try {
      facts = check(findings);
    } catch (const std::exception &bad) {
      findings.require(false, bad.what());
    }
  });
  std::printf("  %-15s %s  %s  (%.1f s)\n", name, findings.count() == 0 ? "right" : "WRONG",
              facts.dump().c_str(), us / 1e6);
  for (const std::string &text : findings.texts())
    std::printf("    %s\n", text.c_str());
  std::fflush(stdout);
  entry[name] = {{"right", findings.count() == 0}, {"facts", facts}, {"wrong", findings.texts()}};
  return findings.count();
}

std::optional<Subject> openOrTell(const std::string &name, int gpu) {
  auto subject = openSubject(name, gpu);
  if (subject)
    return std::move(*subject);
  std::printf("%s: %s\n", name.c_str(), subject.error().text().c_str());
  return std::nullopt;
}

/// Returns how much was wrong.
int checkSubject(const std::string &name, int gpu, bool mustDeal, bool withTimes, json &record) {
  auto subject = openOrTell(name, gpu);
  if (!subject)
    return 1;
  subject->mustDeal = mustDeal;
  std::printf("%s on %s\n", subject->variant().name.c_str(), subject->gpu.facts().name.c_str());
  json entry{{"attention", subject->variant().name}, {"gpu", gpu}, {"device", subject->gpu.facts().name}};
  int wrong = 0;
  for (const Check &check : kChecks)
    if (!check.isTiming || withTimes)
      wrong += report(check.name, [&](Findings &findings) { return check.run(*subject, findings); }, entry);
  record.push_back(entry);
  return wrong;
}

int checkTogether(const std::string &name, const std::vector<int> &gpus, json &record) {
  std::vector<Subject> subjects;
  for (const int gpu : gpus) {
    auto subject = openOrTell(name, gpu);
    if (!subject)
      return 1;
    subjects.push_back(std::move(*subject));
  }
  std::printf("%s on %zu GPUs at once\n", subjects[0].variant().name.c_str(), gpus.size());
  json entry{{"attention", subjects[0].variant().name}, {"gpus", gpus}};
  const int wrong =
      report("devices", [&](Findings &findings) { return checkDevices(subjects, findings); }, entry);
  record.push_back(entry);
  return wrong;
}

int run(int argc, char **argv) {
  CLI::App app("Checks on a GPU how plans and runs behave in a server");
  std::vector<std::string> packages;
  std::string file, commit, config;
  bool noTimes = false, mustDeal = false;
  int only = -1;
  app.add_option("PACKAGE", packages, "Packages, with :ATTENTION where they hold several")->required();
  app.add_option("--json", file, "Write a record to this file");
  app.add_option("--commit", commit, "Of the sources, for the record");
  app.add_option("--gpu", only, "Only this one; else all that there are");
  auto *const own = app.add_option("--config", config, "A file with a config, used before all others")
                        ->check(CLI::ExistingFile);
  app.add_flag("--deals", mustDeal, "Wrong where no plan of the growing tree deals tokens to warps")
      ->needs(own);
  app.add_flag("--no-times", noTimes, "Only right or wrong");
  CLI11_PARSE(app, argc, argv);

  if (!config.empty())
    setenv("DEFT_CONFIG_PATH", config.c_str(), 1);
  const auto gpus = Gpu::list();
  if (!gpus) {
    std::printf("skipped: %s\n", gpus.error().message.c_str());
    const char *required = std::getenv("DEFT_REQUIRE_GPU");
    return required && std::string(required) == "1" ? 3 : 77;
  }
  json record = json::array();
  int wrong = 0;
  std::vector<int> chosen;
  for (const GpuFacts &gpu : *gpus)
    if (!gpu.architecture.empty() && (only < 0 || only == gpu.index))
      chosen.push_back(gpu.index);
  for (const int gpu : chosen)
    for (const std::string &package : packages)
      wrong += checkSubject(package, gpu, mustDeal, !noTimes, record);
  if (chosen.size() > 1)
    for (const std::string &package : packages)
      wrong += checkTogether(package, chosen, record);
  if (!file.empty())
    std::ofstream(file) << json{{"format", "deftc-execution-record"},
                                {"version", 1},
                                {"command", test::commandLine(argc, argv)},
                                {"commit", commit},
                                {"results", record}}
                               .dump(1)
                        << '\n';
  std::printf("%s\n", wrong == 0 ? "all right" : (std::to_string(wrong) + " wrong").c_str());
  return wrong == 0 ? 0 : 1;
}

} // namespace
} // namespace deft::gpu_test

int main(int argc, char **argv) { return deft::gpu_test::run(argc, argv); }
