#include "tests/bench/choice/Measured.h"

#include "compiler/config/ConfigJson.h"
#include "tuner/session/Journal.h"
#include "tuner/session/Recording.h"
#include "tuner/workload/Similar.h"
#include "tuner/workload/Workload.h"

#include <nlohmann/json.hpp>

#include <map>

namespace deft::choice {

using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

Error bad(const std::string &path, const std::string &what) {
  return {ErrorCode::Diagnostics, "`" + path + "`: " + what, ""};
}

/// Whether it is cut as it was on that day. What merged plans counted more then is kept.
bool isPlannedAgain(const config::Config &config) {
  config::CostCoefficients today; // as files without prices mean it, which have not changed since
  today.mergedShare = config.cost.mergedShare;
  return config.partition != spec::Partition::Auto || config.cost == today;
}

Result<std::vector<MeasuredClass>> ofSpace(const std::string &path, const std::string &workloads) {
  const auto recording = session::readRecording(path);
  if (!recording)
    return recording.error();
  MeasuredClass one{recording->trees.front().first, recording->device, recording->signature, {}, {}};
  for (const auto &[name, seed] : recording->trees) {
    const auto workload = workload::make(name, seed, workloads);
    if (!workload)
      return workload.error();
    one.trees.push_back(workload->tree());
  }
  const std::vector<space::Point> points = recording->space.points();
  for (std::size_t i = 0; i < points.size(); ++i)
    if (config::Config config = recording->space.configOf(points[i]);
        recording->ratios[i] > 0 && isPlannedAgain(config))
      one.configs.push_back({std::move(config), recording->ratios[i] * recording->untunedUs});
  return std::vector{std::move(one)};
}

/// Collects a journal's classes event by event.
class JournalReader {
public:
  JournalReader(const std::string &workloads, std::vector<std::string> &notes)
      : workloads_(workloads), notes_(notes) {}

  Result<void> read(const json &event) {
    const std::string kind = event.at("event");
    if (kind == "session")
      return readHead(event);
    if (!event.contains("class"))
      return {};
    Class &one = classes_[event.at("class")];
    if (kind == "class") {
      one.trees = event.at("trees");
      one.untunedId = event.at("default");
    } else if (kind == "candidate") {
      json config = event.at("config");
      if (!config.contains("cost")) // left out where it was what the session planned by
        config["cost"] = cost_;
      auto parsed = config::configFromJson(config, device_.kind);
      if (!parsed)
        return parsed.error();
      one.configs.insert_or_assign(event.at("id"), std::move(*parsed));
    } else if (kind == "scored") {
      one.ratios[event.at("id")] = event.at("ratio");
    } else if (kind == "done") {
      one.untunedUs = event.at("entry").at("measurement").at("untuned_us");
      one.ratios[one.untunedId] = 1;
    }
    return {};
  }

  std::vector<MeasuredClass> take() const {
    std::vector<MeasuredClass> all;
    for (const auto &[name, own] : classes_)
      if (own.untunedUs > 0)
        if (MeasuredClass one{"", device_, signature_, {}, {}}; makeTrees(own, one)) {
          for (const auto &[id, ratio] : own.ratios)
            if (const config::Config &config = own.configs.at(id); isPlannedAgain(config))
              one.configs.push_back({config, ratio * own.untunedUs});
          all.push_back(std::move(one));
        }
    return all;
  }

private:
  struct Class {
    json trees;
    std::string untunedId;
    double untunedUs = 0;
    std::map<std::string, config::Config> configs;
    std::map<std::string, double> ratios; ///< over all rounds, to the untuned config's times
  };

  Result<void> readHead(const json &event) {
    const auto device = config_cache::deviceKeyFromJson(event.at("device"));
    if (!device)
      return device.error();
    const auto signature = config_cache::VariantSignature::parse(event.at("signature").get<std::string>());
    if (!signature)
      return Error{ErrorCode::Diagnostics, "its signature is not understood", ""};
    device_ = *device;
    signature_ = *signature;
    cost_ = event.at("space").at("cost");
    return {};
  }

  bool makeTrees(const Class &own, MeasuredClass &one) const {
    for (const json &tree : own.trees) {
      if (tree.value("held_out", false))
        continue;
      const std::string name = tree.at("name");
      const auto workload = workload::make(name, 0, workloads_);
      const auto seed = tree.value("similar", std::uint64_t{0});
      tree::KvTree made = !workload  ? tree::KvTree()
                          : seed > 0 ? workload::similarTree(workload->tree(), seed)
                                     : workload->tree();
      if (!workload || made.tokens() != tree.at("tokens") ||
          static_cast<int>(made.queries().size()) != tree.at("queries")) {
        notes_.push_back(
            name + " left out: " + (workload ? "the tree is another one now" : workload.error().message));
        return false;
      }
      one.trees.push_back(std::move(made));
      if (one.name.empty())
        one.name = name;
    }
    return !one.trees.empty();
  }

  std::string workloads_;
  std::vector<std::string> &notes_;
  config_cache::DeviceKey device_;
  config_cache::VariantSignature signature_;
  json cost_;
  std::map<std::string, Class> classes_;
};

Result<std::vector<MeasuredClass>> ofJournal(const std::string &path, const std::string &workloads,
                                             std::vector<std::string> &notes) try {
  const auto events = session::readJournal(path);
  if (!events)
    return events.error();
  JournalReader reader(workloads, notes);
  for (const json &event : *events)
    if (auto read = reader.read(event); !read)
      return bad(path, read.error().message);
  return reader.take();
} catch (const json::exception &error) {
  return bad(path, error.what());
}

} // namespace

Result<std::vector<MeasuredClass>> readMeasured(const std::string &path, const std::string &workloads,
                                                std::vector<std::string> &notes) {
  auto classes = path.ends_with(".jsonl") ? ofJournal(path, workloads, notes) : ofSpace(path, workloads);
  if (classes)
    for (const MeasuredClass &one : *classes)
      if (!config_cache::targetOf(one.device))
        return bad(path, "was not measured on a GPU, and only their prices are checked");
  return classes;
}

} // namespace deft::choice
