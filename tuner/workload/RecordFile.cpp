#include "tuner/workload/RecordFile.h"

#include "compiler/support/AtomicFile.h"
#include "runtime/tree/StrictJson.h"
#include "tuner/workload/Recipes.h"

#include <nlohmann/json.hpp>

namespace deft::workload {

using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 28;

Error wrongRecord(std::string message, std::string hint = "") {
  return Error{ErrorCode::Diagnostics, std::move(message), std::move(hint)};
}

std::string indexed(const std::string &where, std::size_t index) {
  return where + "[" + std::to_string(index) + "]";
}

Result<void> checkArray(const json &value, const std::string &where) {
  if (!value.is_array())
    return wrongRecord(where + " must be an array, is " + value.type_name());
  if (value.empty())
    return wrongRecord(where + " is empty");
  return {};
}

Result<std::vector<int>> readInts(const json &array, const std::string &where) {
  if (auto checked = checkArray(array, where); !checked)
    return checked.error();
  std::vector<int> numbers;
  for (std::size_t i = 0; i < array.size(); ++i) {
    const auto number = tree::readInt(array[i], indexed(where, i));
    if (!number)
      return number.error();
    numbers.push_back(*number);
  }
  return numbers;
}

Result<void> checkNode(const std::vector<RecordedNode> &nodes, const RecordedNode &node) {
  const auto text = [](long long number) { return std::to_string(number); };
  if (node.parent < -1 || node.parent >= static_cast<int>(nodes.size()))
    return wrongRecord("parent " + text(node.parent) + " is not an earlier node");
  if (node.lastStep < 0 || node.lastStep > kMostSteps)
    return wrongRecord("last step " + text(node.lastStep) + ", must be 0 to " + text(kMostSteps));
  const long long steps = static_cast<long long>(node.lastStep) - node.firstStep + 1;
  if (steps < 0 || steps > kMostTokens || steps != node.tokens)
    return wrongRecord(text(node.tokens) + " tokens, but the steps " + text(node.firstStep) + " to " +
                       text(node.lastStep) + " make " + text(steps));
  if (node.parent >= 0 && node.firstStep <= nodes[node.parent].lastStep)
    return wrongRecord("first step " + text(node.firstStep) + ", but its parent grows until " +
                       text(nodes[node.parent].lastStep));
  return {};
}

Result<std::vector<RecordedNode>> readNodes(const json &rows, const std::string &where) {
  if (auto checked = checkArray(rows, where); !checked)
    return checked.error();
  std::vector<RecordedNode> nodes;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = readInts(rows[i], indexed(where, i));
    if (!row)
      return row.error();
    if (row->size() != 4)
      return wrongRecord(indexed(where, i) + " has " + std::to_string(row->size()) + " numbers, must have 4");
    const RecordedNode node{(*row)[0], (*row)[1], (*row)[2], (*row)[3]};
    if (auto checked = checkNode(nodes, node); !checked)
      return wrongRecord(indexed(where, i) + ": " + checked.error().message);
    nodes.push_back(node);
  }
  return nodes;
}

Result<RecordFile> readTrees(const json &root) {
  if (auto checked =
          tree::checkKeys(root, "the record", {"format", "name", "columns", "trees"}, {"source", "meaning"});
      !checked)
    return checked.error();
  if (root["columns"] != json::array({"parent", "tokens", "first_step", "last_step"}))
    return wrongRecord("columns must be [\"parent\",\"tokens\",\"first_step\",\"last_step\"], is " +
                       root["columns"].dump());
  if (auto checked = checkArray(root["trees"], "trees"); !checked)
    return checked.error();
  RecordedTrees result;
  for (std::size_t t = 0; t < root["trees"].size(); ++t) {
    const json &tree = root["trees"][t];
    const std::string where = indexed("trees", t);
    if (auto checked = tree::checkKeys(tree, where, {"nodes"}); !checked)
      return checked.error();
    auto nodes = readNodes(tree["nodes"], where + ".nodes");
    if (!nodes)
      return nodes.error();
    result.trees.push_back(std::move(*nodes));
  }
  return RecordFile(std::move(result));
}

Result<TokenTreeRecords::Record> readTreeRecord(const json &object, const std::string &where) {
  if (auto checked = tree::checkKeys(object, where, {"prompt_characters", "accepted"}); !checked)
    return checked.error();
  const auto characters = tree::readInt(object["prompt_characters"], where + ".prompt_characters");
  if (!characters)
    return characters.error();
  if (*characters < 0)
    return wrongRecord(where + ".prompt_characters is " + std::to_string(*characters) +
                       ", must not be negative");
  auto accepted = readInts(object["accepted"], where + ".accepted");
  if (!accepted)
    return accepted.error();
  for (std::size_t i = 0; i < accepted->size(); ++i)
    if ((*accepted)[i] < 0 || (*accepted)[i] > kMostTokens)
      return wrongRecord(indexed(where + ".accepted", i) + " is " + std::to_string((*accepted)[i]) +
                         ", must be 0 to " + std::to_string(kMostTokens));
  return TokenTreeRecords::Record{*characters, std::move(*accepted)};
}

Result<RecordFile> readTokenTree(const json &root) {
  if (auto checked = tree::checkKeys(root, "the record", {"format", "name", "parents", "records"},
                                     {"source", "meaning"});
      !checked)
    return checked.error();
  TokenTreeRecords result;
  auto parents = readInts(root["parents"], "parents");
  if (!parents)
    return parents.error();
  for (std::size_t i = 0; i < parents->size(); ++i)
    if ((*parents)[i] < -1 || (*parents)[i] >= static_cast<int>(i))
      return wrongRecord(indexed("parents", i) + " is " + std::to_string((*parents)[i]) +
                         ", must be an earlier token or -1");
  result.parents = std::move(*parents);
  if (auto checked = checkArray(root["records"], "records"); !checked)
    return checked.error();
  for (std::size_t i = 0; i < root["records"].size(); ++i) {
    auto record = readTreeRecord(root["records"][i], indexed("records", i));
    if (!record)
      return record.error();
    result.records.push_back(std::move(*record));
  }
  return RecordFile(std::move(result));
}

} // namespace

Result<RecordFile> parseRecordFile(std::string_view text) {
  const auto root = tree::parseStrictJson(text);
  if (!root)
    return root.error();
  if (!root->is_object() || !root->contains("format"))
    return wrongRecord("not a recorded workload", "it must be an object with `format`");
  for (const char *key : {"name", "source", "meaning"})
    if (root->contains(key))
      if (auto checked = tree::readString((*root)[key], key); !checked)
        return checked.error();
  const json &format = (*root)["format"];
  if (format == "recorded-tree/1")
    return readTrees(*root);
  if (format == "token-tree/1")
    return readTokenTree(*root);
  return wrongRecord("format is " + format.dump() +
                     ", this program reads \"recorded-tree/1\" and \"token-tree/1\"");
}

Result<RecordFile> readRecordFile(const std::string &path) {
  const auto text = support::readFile(path, kMaxFileBytes);
  if (!text)
    return text.error();
  auto record = parseRecordFile(*text);
  if (!record)
    return wrongRecord(path + ": " + record.error().message, record.error().hint);
  return record;
}

} // namespace deft::workload
