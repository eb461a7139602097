#include "runtime/tree/TreeFile.h"

#include "compiler/support/AtomicFile.h"
#include "runtime/tree/StrictJson.h"
#include "runtime/tree/TreeError.h"

#include <nlohmann/json.hpp>

namespace deft::tree {

using nlohmann::json;
using support::Error;
using support::Result;

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;
constexpr int kNewestVersion = 2;

/// The version, or an error.
Result<int> readHeader(const json &root) {
  if (!root.is_object() || !root.contains("format") || root["format"] != "deftc-tree")
    return wrong("not a tree file", "it must be an object with \"format\": \"deftc-tree\"");
  if (!root.contains("version"))
    return wrong("the tree file lacks `version`");
  auto version = readInt(root["version"], "version");
  if (!version)
    return version;
  if (*version < 1 || *version > kNewestVersion)
    return wrong("tree file version " + std::to_string(*version) + ", this program reads versions 1 and " +
                 std::to_string(kNewestVersion));
  if (auto checked = checkKeys(root, "the tree file", {"format", "version", "nodes", "queries"}); !checked)
    return checked.error();
  return version;
}

Error at(const std::string &where, Error error) {
  error.message = where + ": " + error.message;
  return error;
}

Result<void> readNode(const json &node, const std::string &where, int version, TreeDocument &document) {
  auto checked = version == 1 ? checkKeys(node, where, {"parent", "tokens"})
                              : checkKeys(node, where, {"parent", "tokens"}, {"location", "name"});
  if (!checked)
    return checked;
  const auto parent = readInt(node["parent"], where + ".parent");
  if (!parent)
    return parent.error();
  const auto tokens = readInt(node["tokens"], where + ".tokens");
  if (!tokens)
    return tokens.error();
  const std::size_t index = document.tree.nodes().size();
  if (index == 0)
    document.hasLocations = node.contains("location");
  if (node.contains("location") != document.hasLocations)
    return wrong(where + (document.hasLocations ? " lacks `location`" : " has a `location`") +
                     ", unlike nodes[0]",
                 "all nodes have a location, or none");
  auto location = document.hasLocations ? readInt(node["location"], where + ".location") : Result<int>(0);
  if (!location)
    return location.error();
  if (*location == KvTree::kNotPlaced) // useful in a tree, but not in a file
    return wrong(where + ": location " + std::to_string(*location) + " of node " + std::to_string(index) +
                 " is outside the table, which has at most " + std::to_string(KvTree::kMaxTokens) +
                 " tokens");
  if (node.contains("name")) {
    const auto name = readString(node["name"], where + ".name");
    if (!name)
      return name.error();
    document.names.resize(index + 1);
    document.names[index] = *name;
  }
  if (auto added = document.tree.addNode(*parent, *tokens, *location); !added)
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

template <typename ReadOne> Result<void> readArray(const json &root, const char *key, ReadOne readOne) {
  const json &array = root[key];
  if (!array.is_array())
    return wrong(std::string(key) + " must be an array, is " + array.type_name());
  for (std::size_t i = 0; i < array.size(); ++i)
    if (auto read = readOne(array[i], key + ("[" + std::to_string(i) + "]")); !read)
      return read;
  return {};
}

} // namespace

Result<TreeDocument> parseTreeDocument(std::string_view text) {
  const auto root = parseStrictJson(text);
  if (!root)
    return root.error();
  const auto version = readHeader(*root);
  if (!version)
    return version.error();
  TreeDocument document;
  const auto nodeReader = [&](const json &node, const std::string &where) {
    return readNode(node, where, *version, document);
  };
  if (auto nodes = readArray(*root, "nodes", nodeReader); !nodes)
    return nodes.error();
  const auto queryReader = [&](const json &query, const std::string &where) {
    return readQuery(query, where, document.tree);
  };
  if (auto queries = readArray(*root, "queries", queryReader); !queries)
    return queries.error();
  if (!document.names.empty())
    document.names.resize(document.tree.nodes().size());
  return document;
}

namespace {

/// The kind of a text that was meant for another argument; null: it may be a tree.
const char *otherKindOf(const std::string &text) {
  if (text.starts_with("DEFTPKG"))
    return "a package";
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool isJson = first != std::string::npos && (text[first] == '{' || text[first] == '[');
  return !isJson && text.find("attention ") != std::string::npos ? "a spec" : nullptr;
}

} // namespace

Result<TreeDocument> readTreeDocument(const std::string &path) {
  const auto text = support::readFile(path, kMaxFileBytes);
  if (!text)
    return text.error();
  if (const char *other = otherKindOf(*text))
    return Error{support::ErrorCode::Usage, "`" + path + "` is " + other + ", not a tree",
                 "a tree is a file of JSON"};
  auto document = parseTreeDocument(*text);
  if (!document)
    return at(path, document.error());
  return document;
}

namespace {

Result<KvTree> treeOf(Result<TreeDocument> document) {
  if (!document)
    return document.error();
  return std::move(document->tree);
}

std::string format(const KvTree &tree, const std::vector<std::string> &names, bool hasLocations) {
  const bool isPlain = names.empty() && !hasLocations;
  std::vector<int> number(tree.nodes().size(), -1); // in the file
  std::string text =
      "{\"format\": \"deftc-tree\", \"version\": " + std::to_string(isPlain ? 1 : 2) + ",\n \"nodes\": [";
  const char *separator = "\n";
  int next = 0;
  for (const int index : nodesInFileOrder(tree)) {
    const Node &node = tree.nodes()[index];
    number[index] = next++;
    text += separator + ("  {\"parent\": " + std::to_string(node.parent < 0 ? -1 : number[node.parent])) +
            ", \"tokens\": " + std::to_string(node.tokens);
    if (hasLocations)
      text += ", \"location\": " + std::to_string(node.location);
    if (static_cast<std::size_t>(index) < names.size() && !names[index].empty())
      text += ", \"name\": " + json(names[index]).dump(-1, ' ', false, json::error_handler_t::replace);
    text += "}";
    separator = ",\n";
  }
  text += "],\n \"queries\": [";
  separator = "\n";
  for (const Query &query : tree.queries()) {
    text += separator + ("  {\"node\": " + std::to_string(number[query.node]));
    if (tree.seenTokens(query) != tree.nodes()[query.node].tokens)
      text += ", \"position\": " + std::to_string(tree.seenTokens(query));
    text += "}";
    separator = ",\n";
  }
  return text + "]}\n";
}

} // namespace

Result<KvTree> parseTree(std::string_view text) { return treeOf(parseTreeDocument(text)); }
Result<KvTree> readTreeFile(const std::string &path) { return treeOf(readTreeDocument(path)); }

std::vector<int> nodesInFileOrder(const KvTree &tree) {
  std::vector<int> byIndex, preorder;
  bool isOrdered = true;
  for (int i = 0; i < static_cast<int>(tree.nodes().size()); ++i) {
    const Node &node = tree.nodes()[i];
    isOrdered = isOrdered && node.isAlive && node.parent < i;
    byIndex.push_back(i);
  }
  if (isOrdered)
    return byIndex;
  for (int node = tree.firstRoot(); node >= 0; node = tree.nextInPreorder(node))
    preorder.push_back(node);
  return preorder;
}

std::string formatTree(const KvTree &tree) { return format(tree, {}, false); }
std::string formatTree(const TreeDocument &document) {
  return format(document.tree, document.names, document.hasLocations);
}

Result<void> writeTreeFile(const std::string &path, const KvTree &tree) {
  return support::writeFileAtomically(path, formatTree(tree));
}
Result<void> writeTreeFile(const std::string &path, const TreeDocument &document) {
  return support::writeFileAtomically(path, formatTree(document));
}

} // namespace deft::tree
