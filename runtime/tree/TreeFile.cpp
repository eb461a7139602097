#include "runtime/tree/TreeFile.h"

#include "compiler/support/AtomicFile.h"
#include "runtime/tree/StrictJson.h"
#include "runtime/tree/TreeError.h"

namespace deft::tree {

using nlohmann::json;
using support::Error;
using support::Result;

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;
constexpr int kVersion = 1;

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
  const auto root = parseStrictJson(text);
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
