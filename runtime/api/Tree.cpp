#include "runtime/api/Tree.h"

#include "runtime/api/Queries.h"
#include "runtime/api/Sized.h"
#include "runtime/tree/TreeFile.h"

using namespace deft::api;
using deft::tree::KvTree;

namespace {

Error notOwn(const char *hint) {
  return wrong("tree", "belongs to sequences, a batch or beams, and only they may change it", hint);
}

/// A change of a tree of the caller's own, and of the stamp by which plans see it. `change` gives a
/// Result<void>.
template <typename Change> deft_status change(deft_tree *tree, Change &&change, DEFT_CALLER) {
  const auto changes = [&]() -> Result<void> {
    if (tree->isView())
      return notOwn("call the functions of the handle that gave it");
    const NotedChange noted(*tree);
    return change(tree->change());
  };
  return call({{"tree", tree}}, changes, function);
}

} // namespace

deft_status deft_tree_make(deft_tree **tree) {
  return make({}, tree, [] { return Result(std::make_unique<deft_tree>()); });
}

deft_status deft_tree_copy(const deft_tree *tree, deft_tree **copy) {
  return make({{"tree", tree}}, copy, [&] { return Result(std::make_unique<deft_tree>(*tree)); });
}

deft_status deft_tree_parse(const char *json, deft_tree **tree) {
  return make({{"json", json}}, tree, [&]() -> Result<std::unique_ptr<deft_tree>> {
    auto parsed = deft::tree::parseTreeDocument(json);
    if (!parsed)
      return parsed.error();
    if (!parsed->hasLocations)
      parsed->tree.forgetPlaces();
    return std::make_unique<deft_tree>(std::move(parsed->tree));
  });
}

deft_status deft_tree_get_json(const deft_tree *tree, char **json) {
  return giveText({{"tree", tree}, {"json", json}}, json,
                  [&] { return Result(deft::tree::formatTree(tree->tree())); });
}

void deft_tree_destroy(deft_tree *tree) {
  if (tree && tree->isView())
    fail(notOwn("it ends with the handle that gave it"));
  else
    delete tree;
}

deft_status deft_tree_add_root(deft_tree *tree, int32_t tokens, int32_t location, int32_t *node) {
  return change(tree, [&](KvTree &own) { return give(own.addNode(-1, tokens, location), node); });
}

deft_status deft_tree_add_child(deft_tree *tree, int32_t parent, int32_t tokens, int32_t location,
                                int32_t *node) {
  return change(tree, [&](KvTree &own) {
    const auto checked = checkParent(parent);
    return checked ? give(own.addNode(parent, tokens, location), node) : checked;
  });
}

deft_status deft_tree_append(deft_tree *tree, int32_t leaf, int32_t tokens) {
  return change(tree, [&](KvTree &own) { return own.append(leaf, tokens); });
}

deft_status deft_tree_fork(deft_tree *tree, int32_t node, int32_t position, int32_t *branch) {
  return change(tree, [&](KvTree &own) { return give(own.fork(node, positionOf(position)), branch); });
}

deft_status deft_tree_prune(deft_tree *tree, int32_t node) {
  return change(tree, [&](KvTree &own) { return own.prune(node); });
}

deft_status deft_tree_accept(deft_tree *tree, int32_t sequence, int32_t last, deft_stretch **stretches,
                             size_t *count) {
  clear(stretches);
  return change(tree, [&](KvTree &own) -> Result<void> {
    if (auto checked = checkPointers({{"stretches", stretches}, {"count", count}}); !checked)
      return checked;
    return giveArray(own.accept(sequence, last), stretches, count, [](const deft::tree::Stretch &stretch) {
      return deft_stretch{.location = stretch.location, .tokens = stretch.tokens};
    });
  });
}

deft_status deft_tree_place(deft_tree *tree, int32_t node, int32_t location) {
  return change(tree, [&](KvTree &own) { return own.place(node, location); });
}

deft_status deft_tree_add_query(deft_tree *tree, int32_t node, int32_t position, int32_t *query) {
  return change(tree, [&](KvTree &own) { return give(own.addQuery(node, positionOf(position)), query); });
}

deft_status deft_tree_remove_query(deft_tree *tree, int32_t query) {
  return change(tree, [&](KvTree &own) { return own.removeQuery(query); });
}

deft_status deft_tree_set_queries(deft_tree *tree, const deft_query *queries, size_t count) {
  return change(tree, [&](KvTree &own) -> Result<void> {
    const auto given = queriesOf(queries, count);
    return given ? Result<void>(own.setQueries(*given)) : given.error();
  });
}

deft_status deft_tree_clear_queries(deft_tree *tree) {
  return change(tree, [&](KvTree &own) {
    own.clearQueries();
    return Result<void>();
  });
}

int32_t deft_tree_is_alive(const deft_tree *tree, int32_t node) {
  return ask({"tree", tree}, 0, [&] { return tree->tree().isAlive(node); });
}

deft_status deft_tree_get_node(const deft_tree *tree, int32_t node, deft_node *facts) {
  return call({{"tree", tree}, {"facts", facts}}, [&]() -> Result<void> {
    if (!tree->tree().isAlive(node))
      return usage("there is no living node " + std::to_string(node));
    const deft::tree::Node &own = tree->tree().nodes()[static_cast<std::size_t>(node)];
    deft_node known{};
    known.parent = own.parent;
    known.tokens = own.tokens;
    known.location = own.location;
    known.depth = own.depth;
    known.position = own.position;
    return writeSized("deft_node", known, facts);
  });
}

deft_status deft_tree_get_nodes(const deft_tree *tree, int32_t **nodes, size_t *count) {
  clear(nodes);
  return call({{"tree", tree}, {"nodes", nodes}, {"count", count}}, [&]() -> Result<void> {
    std::vector<int> all;
    for (int node = tree->tree().firstRoot(); node >= 0; node = tree->tree().nextInPreorder(node))
      all.push_back(node);
    giveArray(all, nodes, count, [](int node) { return node; });
    return {};
  });
}

int32_t deft_tree_query_count(const deft_tree *tree) {
  return ask({"tree", tree}, 0, [&] { return tree->tree().queries().size(); });
}

deft_status deft_tree_get_query(const deft_tree *tree, int32_t query, deft_query *facts) {
  return call({{"tree", tree}, {"facts", facts}}, [&]() -> Result<void> {
    const auto &queries = tree->tree().queries();
    if (query < 0 || static_cast<std::size_t>(query) >= queries.size())
      return usage("there is no query " + std::to_string(query) + ", the tree has " +
                   std::to_string(queries.size()));
    const deft::tree::Query &own = queries[static_cast<std::size_t>(query)];
    *facts = {.node = own.node, .position = own.position};
    return {};
  });
}

int32_t deft_tree_path_tokens(const deft_tree *tree, int32_t query) {
  return ask({"tree", tree}, 0, [&] {
    const auto &queries = tree->tree().queries();
    const bool isThere = query >= 0 && static_cast<std::size_t>(query) < queries.size();
    return isThere ? tree->tree().pathTokens(queries[static_cast<std::size_t>(query)]) : 0;
  });
}

int64_t deft_tree_tokens(const deft_tree *tree) {
  return ask<int64_t>({"tree", tree}, 0, [&] { return tree->tree().tokens(); });
}
