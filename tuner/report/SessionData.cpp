#include "tuner/report/SessionData.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/kernels/Family.h"
#include "compiler/support/JsonFields.h"
#include "compiler/support/Numbers.h"
#include "tuner/measure/Samples.h"
#include "tuner/session/Journal.h"
#include "tuner/session/Shard.h"
#include "tuner/sparse/ReportJson.h"

#include <algorithm>
#include <cmath>

namespace deft::report {

using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

using Turn = std::pair<int, int>; ///< tree, round
/// Microseconds in one class's search, by candidate.
using Times = std::map<std::string, std::map<Turn, double>>;

class EventReader {
public:
  explicit EventReader(const std::string &path) { session_.path = path; }

  Result<void> read(const json &event) {
    const std::string kind = event.at("event");
    if (kind == "session")
      return readHead(event);
    if (kind == "resumed")
      ++session_.resumed;
    else if (kind == "end")
      readEnd(event);
    else if (kind == "class")
      readClass(event);
    else if (kind == "sparse")
      return readSparse(event);
    else
      return readOfClass(kind, event);
    return {};
  }

  SessionData take() {
    for (ClassData &one : session_.classes)
      findRatios(one);
    return std::move(session_);
  }

private:
  Result<void> readHead(const json &event) {
    session_.variant = event.value("variant", "");
    session_.signature = event.value("signature", "");
    session_.backend = event.value("backend", "");
    session_.driver = event.value("driver", "");
    session_.deftcVersion = event.value("deftc", "");
    session_.kernelHash = event.value("kernel_hash", "");
    session_.strategy = event.value("strategy", "");
    session_.started = event.value("started", "");
    session_.command = event.value("command", "");
    const auto shard = session::shardOf(event);
    if (!shard)
      return shard.error();
    if (event.contains("classes"))
      for (const std::string &name :
           session::ownClasses(event.at("classes").get<std::vector<std::string>>(), *shard))
        classOf(name);
    const json device = event.value("device", json::object());
    session_.device = device.is_string() ? device.get<std::string>() : device.value("name", "");
    if (const auto key = config_cache::deviceKeyFromJson(device))
      session_.key = *key;
    if (device.is_object()) {
      const int units = device.value("units", 0);
      session_.device +=
          ", " + device.value("arch", "") + ", " +
          (session_.backend == "cpu" ? support::counted(units, "thread", "threads")
                                     : support::counted(units, "multiprocessor", "multiprocessors"));
    }
    if (event.contains("space_size"))
      readSize(event.at("space_size"));
    return {};
  }

  void readSize(const json &size) {
    session_.spaceAll = size.value("all", 0LL);
    session_.spaceLegal = size.value("legal", 0LL);
    session_.broken.clear();
    const json broken = size.value("broken", json::object());
    for (const auto &[rule, count] : broken.items())
      session_.broken.emplace_back(rule, count.get<long long>());
    std::sort(session_.broken.begin(), session_.broken.end(),
              [](const auto &a, const auto &b) { return a.second > b.second; });
  }

  void readEnd(const json &event) {
    session_.ended = event.value("reason", "");
    session_.made += event.value("made", 0);
    session_.reused += event.value("reused", 0);
    session_.seconds += event.value("seconds", 0.0);
  }

  /// The last event includes the results of the earlier ones.
  Result<void> readSparse(const json &event) {
    auto report = sparse::tuneReportFromJson(event);
    if (!report)
      return report.error();
    session_.sparse = std::move(*report);
    return {};
  }

  void readClass(const json &event) {
    ClassData &one = classOf(event.at("class"));
    one.trees.clear(); // a resumed session writes them again
    one.defaultId = event.value("default", "");
    const json trees = event.value("trees", json::array());
    for (const json &tree : trees)
      one.trees.push_back({tree.value("name", ""), tree.value("tokens", 0), tree.value("queries", 0),
                           tree.value("held_out", false), tree.value("untuned", one.defaultId),
                           tree.value("seed", std::uint64_t{0}), tree.value("similar", std::uint64_t{0})});
  }

  config::DeviceKind device() const {
    return session_.backend == "cpu" ? config::DeviceKind::Cpu : config::DeviceKind::Gpu;
  }

  Result<void> readOfClass(const std::string &kind, const json &event) {
    if (!event.contains("class"))
      return {}; // this report does not know this kind
    ClassData &one = classOf(event.at("class"));
    if (kind == "done")
      return readDone(event, one);
    if (!event.contains("id"))
      return {};
    const std::string id = event.at("id");
    if (kind == "candidate") {
      auto config = config::configFromJson(event.at("config"), device());
      if (!config)
        return Error{ErrorCode::Diagnostics, "candidate " + id + ": " + config.error().message, ""};
      CandidateData &candidate = candidateOf(one, id);
      candidate.config = std::move(*config);
      if (candidate.origin.empty())
        candidate.origin = event.value("origin", "");
      candidate.predictedUs = event.value("predicted_us", 0.0);
    } else if (kind == "measured") {
      const int round = event.value("round", 0);
      if (round < session::kFinalFrom)
        times_[one.name][id][{event.value("tree", 0), round}] =
            measure::median(event.at("us").get<std::vector<double>>());
    } else if (kind == "scored") {
      candidateOf(one, id).ratio = event.value("ratio", 0.0);
    } else if (kind == "dropped") {
      candidateOf(one, id).isDropped = true;
    } else if (kind == "rejected") {
      CandidateData &candidate = candidateOf(one, id);
      candidate.stage = event.value("stage", "");
      candidate.reason = event.value("reason", "");
    }
    return {};
  }

  static Result<void> readDone(const json &event, ClassData &one) {
    one.winnerId = event.value("winner", "");
    one.gain = event.value("gain", 1.0);
    one.gainError = event.value("gain_error", 0.0);
    one.seconds = event.value("seconds", 0.0);
    one.note = event.value("note", "");
    one.heldOutGain.reset();
    if (const json heldOut = event.value("held_out", json()); heldOut.is_object())
      one.heldOutGain = heldOut.value("gain", 1.0);
    else if (const json gain = event.value("held_out_gain", json()); gain.is_number())
      one.heldOutGain = gain.get<double>();
    const json entry = event.value("entry", json::object());
    one.keepsDefault = entry.value("keeps_default", false);
    one.isCut = event.value("is_cut", false);
    const json measurement = entry.value("measurement", json::object());
    one.tunedUs = measurement.value("tuned_us", 0.0);
    one.untunedUs = measurement.value("untuned_us", 0.0);
    one.spread = measurement.value("spread", 0.0);
    return {};
  }

  ClassData &classOf(const std::string &name) {
    for (ClassData &one : session_.classes)
      if (one.name == name)
        return one;
    session_.classes.emplace_back().name = name;
    return session_.classes.back();
  }

  static CandidateData &candidateOf(ClassData &one, const std::string &id) {
    for (CandidateData &candidate : one.candidates)
      if (candidate.id == id)
        return candidate;
    one.candidates.emplace_back().id = id;
    return one.candidates.back();
  }

  /// Dropped candidates have no score: their ratio is that of their times to the untuned config's, on the
  /// same tree and round, as the median over rounds and the geometric mean over trees.
  void findRatios(ClassData &one) {
    const Times &times = times_[one.name];
    for (CandidateData &candidate : one.candidates) {
      const auto own = times.find(candidate.id);
      if (own == times.end())
        continue;
      candidate.rounds = static_cast<int>(own->second.size());
      std::map<int, std::vector<double>> ofTree;
      for (const auto &[turn, us] : own->second)
        if (const double base = untunedUs(one, times, turn); base > 0 && us > 0)
          ofTree[turn.first].push_back(us / base);
      candidate.ratioSpread = spreadOf(ofTree);
      if (candidate.ratio > 0)
        continue;
      double logSum = 0;
      for (const auto &[tree, ratios] : ofTree)
        logSum += std::log(measure::median(ratios));
      if (!ofTree.empty())
        candidate.ratio = std::exp(logSum / static_cast<double>(ofTree.size()));
    }
  }

  /// The largest of the trees' spreads; unknown with a single round.
  static double spreadOf(const std::map<int, std::vector<double>> &ofTree) {
    constexpr std::size_t kFewest = 3;
    double spread = 0;
    for (const auto &[tree, ratios] : ofTree) {
      std::vector<double> sorted = ratios;
      std::sort(sorted.begin(), sorted.end());
      if (sorted.size() >= kFewest)
        spread = std::max(spread, (sorted[(3 * sorted.size() - 1) / 4] - sorted[sorted.size() / 4]) / 2);
    }
    return spread;
  }

  /// 0: unknown.
  static double untunedUs(const ClassData &one, const Times &times, Turn turn) {
    const auto tree = static_cast<std::size_t>(turn.first);
    const auto untuned = times.find(tree < one.trees.size() ? one.trees[tree].untunedId : one.defaultId);
    if (untuned == times.end())
      return 0;
    const auto found = untuned->second.find(turn);
    return found == untuned->second.end() ? 0 : found->second;
  }

  SessionData session_;
  std::map<std::string, Times> times_;
};

} // namespace

const CandidateData *ClassData::find(const std::string &id) const {
  const auto found = std::find_if(candidates.begin(), candidates.end(),
                                  [&](const CandidateData &candidate) { return candidate.id == id; });
  return found == candidates.end() ? nullptr : &*found;
}

Result<SessionData> sessionOf(const std::vector<json> &events, const std::string &path) {
  EventReader reader(path);
  try {
    for (const json &event : events)
      if (auto read = reader.read(event); !read)
        return Error{read.error().code, "journal `" + path + "`: " + read.error().message, ""};
  } catch (const json::exception &wrong) { // an event with the right sum but the wrong fields
    return Error{ErrorCode::Diagnostics,
                 "journal `" + path + "` is not understood: " + support::faultText(wrong), ""};
  }
  return reader.take();
}

Result<SessionData> readSession(const std::string &path) {
  const auto events = session::readJournal(path);
  if (!events)
    return events.error();
  return sessionOf(*events, path);
}

std::string configText(const config::Config &config) {
  std::string text = config::partitionName(config.partition) + ", chunk " +
                     (config.chunkTokens > 0 ? std::to_string(config.chunkTokens) : "unlimited") +
                     config::orderText(config.order);
  if (kernels::countsRowsAlone(config))
    return text + ", " + std::to_string(config::mostRows(config)) + " rows";
  for (const config::PhaseConfig &phase : config.phases)
    text += std::string(config.phases.size() > 1 ? ", " + phase.name + " " : ", ") +
            config::familyName(phase.family) + " " + std::to_string(phase.tileQ) + "x" +
            std::to_string(phase.tileKv) + ", " + std::to_string(phase.stages) + " stages, " +
            std::to_string(phase.warps) + " warps";
  return text;
}

} // namespace deft::report
