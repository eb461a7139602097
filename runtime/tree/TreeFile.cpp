#include "runtime/tree/TreeFile.h"

#include "compiler/support/AtomicFile.h"
#include "compiler/support/NearestName.h"
#include "runtime/tree/TreeError.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <initializer_list>
#include <set>

namespace deft::tree {

using nlohmann::json;
using support::Error;
using support::Result;

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;
constexpr int kVersion = 1;

std::string lineAndColumn(std::string_view text, std::size_t byte) {
  std::size_t line = 1, column = 1;
  for (std::size_t i = 0; i + 1 < byte && i < text.size(); ++i) {
    const bool isNewline = text[i] == '\n';
    line += isNewline;
    column = isNewline ? 1 : column + 1;
  }
  return std::to_string(line) + ":" + std::to_string(column);
}

/// JSON's own grammar, and no key twice in an object (a parser would keep the last one silently).
Result<json> parseJson(std::string_view text) {
  std::vector<std::set<std::string>> keysOfOpenObjects;
  std::string repeated;
  const auto watch = [&](int, json::parse_event_t event, json &value) {
    if (event == json::parse_event_t::object_start)
      keysOfOpenObjects.emplace_back();
    else if (event == json::parse_event_t::object_end)
      keysOfOpenObjects.pop_back();
    else if (event == json::parse_event_t::key && !keysOfOpenObjects.back().insert(value).second)
      repeated = value;
    return true;
  };
  try {
    json parsed = json::parse(text, watch);
    if (!repeated.empty())
      return wrong("key `" + repeated + "` stands twice in one object");
    return parsed;
  } catch (const json::parse_error &error) {
    return wrong("not valid JSON at " + lineAndColumn(text, error.byte));
  } catch (const json::exception &) {
    return wrong("a number is too large"); // the grammar's only other failure
  }
}

/// An object with all keys of `needed`, and beside them at most those of `optional`.
Result<void> checkKeys(const json &object, const std::string &where,
                       std::initializer_list<const char *> needed,
                       std::initializer_list<const char *> optional = {}) {
  if (!object.is_object())
    return wrong(where + " must be an object, is " + object.type_name());
  std::vector<std::string> known(needed.begin(), needed.end());
  known.insert(known.end(), optional.begin(), optional.end());
  for (const auto &[key, value] : object.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      return wrong(where + " has an unknown key `" + key + "`", support::didYouMean(key, known));
  for (const char *key : needed)
    if (!object.contains(key))
      return wrong(where + " lacks `" + key + "`");
  return {};
}

Result<int> readInt(const json &value, const std::string &where) {
  if (!value.is_number_integer())
    return wrong(where + " must be an integer, is " +
                 (value.is_number() ? value.dump() : std::string(value.type_name())));
  const bool fits = value.is_number_unsigned() ? value.get<std::uint64_t>() <= INT32_MAX
                                               : value.get<std::int64_t>() >= INT32_MIN;
  if (!fits)
    return wrong(where + " is " + value.dump() + ", must fit 32 bits");
  return value.get<int>();
}

Result<void> readHeader(const json &root) {
  if (!root.is_object() || !root.contains("format") || root["format"] != "deftc-tree")
    return wrong("not a tree file", "it must be an object with \"format\": \"deftc-tree\"");
  if (!root.contains("version"))
    return wrong("the tree file lacks `version`");
  const auto version = readInt(root["version"], "version");
  if (!version)
    return version.error();
  if (*version != kVersion)
    return wrong("tree file version " + std::to_string(*version) + ", this program reads version " +
                 std::to_string(kVersion));
  return checkKeys(root, "the tree file", {"format", "version", "nodes", "queries"});
}

Error at(const std::string &where, Error error) {
  error.message = where + ": " + error.message;
  return error;
}

Result<void> readNode(const json &node, const std::string &where, KvTree &tree) {
  if (auto checked = checkKeys(node, where, {"parent", "tokens"}); !checked)
    return checked;
  const auto parent = readInt(node["parent"], where + ".parent");
  if (!parent)
    return parent.error();
  const auto tokens = readInt(node["tokens"], where + ".tokens");
  if (!tokens)
    return tokens.error();
  if (auto added = tree.addNode(*parent, *tokens); !added)
    return at(where, added.error());
  return {};
}

Result<void> readQuery(const json &query, const std::string &where, KvTree &tree) {
  if (auto checked = checkKeys(query, where, {"node"}, {"position"}); !checked)
    return checked;
  const auto node = readInt(query["node"], where + ".node");
  if (!node)
    return node.error();
  std::optional<int> position;
  if (query.contains("position")) {
    const auto given = readInt(query["position"], where + ".position");
    if (!given)
      return given.error();
    position = *given;
  }
  if (auto added = tree.addQuery(*node, position); !added)
    return at(where, added.error());
  return {};
}

template <typename ReadOne>
Result<void> readArray(const json &root, const char *key, KvTree &tree, ReadOne readOne) {
  const json &array = root[key];
  if (!array.is_array())
    return wrong(std::string(key) + " must be an array, is " + array.type_name());
  for (std::size_t i = 0; i < array.size(); ++i)
    if (auto read = readOne(array[i], key + ("[" + std::to_string(i) + "]"), tree); !read)
      return read;
  return {};
}

} // namespace

Result<KvTree> parseTree(std::string_view text) {
  const auto root = parseJson(text);
  if (!root)
    return root.error();
  if (auto header = readHeader(*root); !header)
    return header.error();
  KvTree tree;
  if (auto nodes = readArray(*root, "nodes", tree, readNode); !nodes)
    return nodes.error();
  if (auto queries = readArray(*root, "queries", tree, readQuery); !queries)
    return queries.error();
  return tree;
}

Result<KvTree> readTreeFile(const std::string &path) {
  const auto text = support::readFile(path, kMaxFileBytes);
  if (!text)
    return text.error();
  auto tree = parseTree(*text);
  if (!tree)
    return at(path, tree.error());
  return tree;
}

std::string formatTree(const KvTree &tree) {
  std::string text =
      "{\"format\": \"deftc-tree\", \"version\": " + std::to_string(kVersion) + ",\n \"nodes\": [";
  const char *separator = "\n";
  for (const Node &node : tree.nodes()) {
    text += separator + ("  {\"parent\": " + std::to_string(node.parent)) +
            ", \"tokens\": " + std::to_string(node.tokens) + "}";
    separator = ",\n";
  }
  text += "],\n \"queries\": [";
  separator = "\n";
  for (const Query &query : tree.queries()) {
    text += separator + ("  {\"node\": " + std::to_string(query.node));
    if (tree.seenTokens(query) != tree.nodes()[query.node].tokens)
      text += ", \"position\": " + std::to_string(tree.seenTokens(query));
    text += "}";
    separator = ",\n";
  }
  return text + "]}\n";
}

Result<void> writeTreeFile(const std::string &path, const KvTree &tree) {
  return support::writeFileAtomically(path, formatTree(tree));
}

} // namespace deft::tree
