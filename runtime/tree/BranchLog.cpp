#include "runtime/tree/BranchController.h"

#include "compiler/support/NearestName.h"
#include "runtime/tree/StrictJson.h"
#include "runtime/tree/TreeError.h"

#include <algorithm>
#include <iterator>
#include <string>

/// What a controller did, for people and for machines.
namespace deft::tree {

using nlohmann::json;
using support::Result;

namespace {

const char *const kActionNames[] = {"fork", "prune", "accept", "finish"};
constexpr int kVersion = 1;

std::string childrenOf(const std::vector<Branch> &branches, int parent) {
  std::string names;
  for (std::size_t i = 0; i < branches.size(); ++i)
    if (branches[i].parent == parent)
      names += (names.empty() ? "" : ", ") + std::to_string(i);
  return names;
}

std::string describe(const std::vector<Branch> &branches, int index) {
  const Branch &branch = branches[index];
  std::string text = "branch " + std::to_string(index) + ": from " +
                     (branch.parent < 0 ? "a prompt" : "branch " + std::to_string(branch.parent));
  if (branch.lastStep < branch.firstStep)
    text += ", no step";
  else if (branch.lastStep == branch.firstStep)
    text += ", step " + std::to_string(branch.firstStep);
  else
    text += ", steps " + std::to_string(branch.firstStep) + " to " + std::to_string(branch.lastStep);
  const std::string children = childrenOf(branches, index);
  if (branch.state == BranchState::Active)
    return text + ", active";
  if (!children.empty())
    return text + ", forked at step " + std::to_string(branch.endStep) + " into " + children +
           (branch.state == BranchState::Pruned ? ", pruned with them" : "");
  return text + (branch.state == BranchState::Finished ? ", finished" : ", pruned") + " at step " +
         std::to_string(branch.endStep);
}

Result<BranchEvent> readEvent(const json &object, const std::string &where) {
  if (auto checked = checkKeys(object, where, {"step", "branch", "action"}, {"count"}); !checked)
    return checked.error();
  BranchEvent event;
  for (const auto &[key, value] :
       {std::pair("step", &event.step), std::pair("branch", &event.action.branch)}) {
    const auto number = readInt(object[key], where + "." + key);
    if (!number)
      return number.error();
    *value = *number;
  }
  if (event.step < 1)
    return wrong(where + ".step is " + std::to_string(event.step) + ", must be at least 1");
  const auto name = readString(object["action"], where + ".action");
  if (!name)
    return name.error();
  const std::vector<std::string> names(std::begin(kActionNames), std::end(kActionNames));
  const auto at = std::find(names.begin(), names.end(), *name);
  if (at == names.end())
    return wrong(where + ".action is `" + *name + "`, must be fork, prune, accept or finish",
                 support::didYouMean(*name, names));
  event.action.kind = static_cast<BranchAction::Kind>(at - names.begin());
  const bool isFork = event.action.kind == BranchAction::Kind::Fork;
  if (object.contains("count") != isFork)
    return wrong(where + (isFork ? " lacks `count`" : " has a `count`, but does not fork"));
  if (isFork) {
    const auto count = readInt(object["count"], where + ".count");
    if (!count)
      return count.error();
    event.action.count = *count;
  }
  return event;
}

} // namespace

std::string describeBranches(const BranchController &controller) {
  std::string text;
  for (std::size_t i = 0; i < controller.branches().size(); ++i)
    text += describe(controller.branches(), static_cast<int>(i)) + "\n";
  return text;
}

std::string formatScript(std::span<const BranchEvent> events) {
  std::string text =
      "{\"format\": \"deftc-branches\", \"version\": " + std::to_string(kVersion) + ", \"events\": [";
  const char *separator = "\n";
  for (const BranchEvent &event : events) {
    text += separator + ("  {\"step\": " + std::to_string(event.step)) +
            ", \"branch\": " + std::to_string(event.action.branch) + ", \"action\": \"" +
            kActionNames[static_cast<int>(event.action.kind)] + "\"";
    if (event.action.kind == BranchAction::Kind::Fork)
      text += ", \"count\": " + std::to_string(event.action.count);
    text += "}";
    separator = ",\n";
  }
  return text + "]}\n";
}

Result<std::vector<BranchEvent>> parseScript(std::string_view text) {
  const auto root = parseStrictJson(text);
  if (!root)
    return root.error();
  if (!root->is_object() || !root->contains("format") || (*root)["format"] != "deftc-branches")
    return wrong("not a script of branches", "it must be an object with \"format\": \"deftc-branches\"");
  if (auto checked = checkKeys(*root, "the script", {"format", "version", "events"}); !checked)
    return checked.error();
  const auto version = readInt((*root)["version"], "version");
  if (!version)
    return version.error();
  if (*version != kVersion)
    return wrong("script version " + std::to_string(*version) + ", this program reads version " +
                 std::to_string(kVersion));
  const json &array = (*root)["events"];
  if (!array.is_array())
    return wrong(std::string("events must be an array, is ") + array.type_name());
  std::vector<BranchEvent> events;
  for (std::size_t i = 0; i < array.size(); ++i) {
    const auto event = readEvent(array[i], "events[" + std::to_string(i) + "]");
    if (!event)
      return event.error();
    events.push_back(*event);
  }
  return events;
}

} // namespace deft::tree
