#include "tuner/session/SessionHead.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/support/Hash.h"
#include "runtime/module_cache/CubinCache.h"
#include "runtime/tree/TreeFile.h"
#include "tuner/session/Journal.h"

#include <filesystem>

namespace deft::session {

using nlohmann::json;
using support::Error;
using support::Result;

json sessionEvent(const SessionFacts &facts) {
  json trees = json::array();
  for (const TreesOfClass &one : facts.classes)
    for (std::size_t i = 0; i < one.samples.size(); ++i)
      trees.push_back({one.treeClass.text(), static_cast<int>(i) < one.searched,
                       support::sha256Hex(tree::formatTree(one.samples[i]->tree)).substr(0, 12)});
  const std::string signature = config_cache::VariantSignature::of(facts.input.variant).text();
  const std::string kernelHash = config_cache::kernelHash(facts.device.key.kind, facts.input.variant.tensors);
  json identity = {{"signature", signature},
                   {"device", config_cache::toJson(facts.device.key)},
                   {"deftc", DEFT_VERSION},
                   {"kernel_hash", kernelHash},
                   {"strategy", search::strategyName(facts.options.strategy)},
                   {"most_candidates", facts.options.mostCandidates},
                   {"seed", facts.options.seed},
                   {"scattered", facts.options.pages == tree::PlacementOrder::Scattered},
                   {"is_recording", !facts.options.recordFolder.empty()},
                   {"untuned", config::toJson(facts.untuned)},
                   {"space", support::sha256Hex(space::toJson(facts.space).dump()).substr(0, 16)},
                   {"trees", std::move(trees)}};
  for (const exec::ParamValue &value : facts.input.params)
    identity["params"].push_back({value.f32, value.i32});
  if (facts.options.fromRelated)
    identity["from_related"] = true;
  const std::string hash = support::sha256Hex(identity.dump()).substr(0, 12);
  json parts = json::object();
  for (const auto &[name, value] : identity.items())
    parts[name] = support::sha256Hex(value.dump()).substr(0, 8);
  json classes = json::array();
  for (const TreesOfClass &one : facts.classes)
    classes.push_back(one.treeClass.text());
  json event = {
      {"event", "session"},
      {"version", kJournalVersion},
      {"identity", hash},
      {"parts", std::move(parts)},
      {"variant", facts.input.variant.name},
      {"signature", signature},
      {"device", config_cache::toJson(facts.device.key)},
      {"driver", facts.device.driver},
      {"deftc", DEFT_VERSION},
      {"kernel_hash", kernelHash},
      {"backend", facts.input.backend.isGpu() ? "cuda" : "cpu"},
      {"strategy", search::strategyName(facts.options.strategy)},
      {"space", space::toJson(facts.space)},
      {"space_size", {{"all", facts.size.all}, {"legal", facts.size.legal}, {"broken", facts.size.broken}}},
      {"classes", std::move(classes)},
      {"command", facts.options.command},
      {"started", config_cache::timestamp()}};
  if (facts.options.shard)
    event["shard"] = {{"index", facts.options.shard->index}, {"count", facts.options.shard->count}};
  return event;
}

Result<std::string> journalPath(const TuneOptions &options, const json &event) {
  if (!options.journal.empty())
    return options.journal;
  const auto folder = module_cache::defaultCacheFolder();
  if (!folder)
    return Error{folder.error().code, folder.error().message, "name a file for the journal"};
  std::string name = event.at("signature").get<std::string>() + "-" + event.at("identity").get<std::string>();
  if (options.shard)
    name += "-shard-" + std::to_string(options.shard->index) + "-of-" + std::to_string(options.shard->count);
  name += ".jsonl";
  return (std::filesystem::path(*folder) / "tune" / name).string();
}

} // namespace deft::session
