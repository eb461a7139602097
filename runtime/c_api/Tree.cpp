#include "runtime/c_api/Handles.h"
#include "runtime/c_api/Made.h"
#include "runtime/c_api/Queries.h"
#include "runtime/c_api/Sized.h"
#include "runtime/c_api/Texts.h"

using namespace deft::c;

namespace {

constexpr char kNotOwn[] = "the tree belongs to sequences or to a batch, which alone change it";

/// A change of a tree of the caller's own; `change` gives a Result of it.
template <typename Change> deft_status changeTree(const char *function, deft_tree *tree, Change &&change) {
  return call(function, {{"tree", tree}}, [&]() -> deft::Result<void> {
    if (!tree->own)
      return usage(kNotOwn, "call the functions of the handle that gave it");
    return change(*tree->own);
  });
}

} // namespace

deft_status deft_tree_make(deft_tree **tree) {
  return make(__func__, {}, tree, [] { return deft::Result(deft::Tree()); });
}

deft_status deft_tree_copy(const deft_tree *tree, deft_tree **copy) {
  return make(__func__, {{"tree", tree}}, copy, [&] { return deft::Result(deft::Tree(*tree->seen)); });
}

deft_status deft_tree_parse(const char *json, deft_tree **tree) {
  return make(__func__, {{"json", json}}, tree, [&] { return deft::Tree::parse(json); });
}

deft_status deft_tree_get_json(const deft_tree *tree, char **json) {
  return giveText(__func__, {{"tree", tree}, {"json", json}}, json,
                  [&]() -> deft::Result<std::string> { return tree->seen->json(); });
}

void deft_tree_destroy(deft_tree *tree) {
  if (tree && !tree->own)
    fail(usage(kNotOwn, "it ends with the handle that gave it"));
  else
    delete tree;
}

deft_status deft_tree_add_root(deft_tree *tree, int32_t tokens, int32_t location, int32_t *node) {
  return changeTree(__func__, tree,
                    [&](deft::Tree &own) { return give(own.addRoot(tokens, location), node); });
}

deft_status deft_tree_add_child(deft_tree *tree, int32_t parent, int32_t tokens, int32_t location,
                                int32_t *node) {
  return changeTree(__func__, tree,
                    [&](deft::Tree &own) { return give(own.addChild(parent, tokens, location), node); });
}

deft_status deft_tree_append(deft_tree *tree, int32_t leaf, int32_t tokens) {
  return changeTree(__func__, tree, [&](deft::Tree &own) { return own.append(leaf, tokens); });
}

deft_status deft_tree_fork(deft_tree *tree, int32_t node, int32_t position, int32_t *branch) {
  return changeTree(__func__, tree,
                    [&](deft::Tree &own) { return give(own.fork(node, positionOf(position)), branch); });
}

deft_status deft_tree_prune(deft_tree *tree, int32_t node) {
  return changeTree(__func__, tree, [&](deft::Tree &own) { return own.prune(node); });
}

deft_status deft_tree_accept(deft_tree *tree, int32_t sequence, int32_t last, deft_stretch **stretches,
                             size_t *count) {
  clearPlace(stretches);
  return changeTree(__func__, tree, [&](deft::Tree &own) -> deft::Result<void> {
    if (auto checked = checkPointers("deft_tree_accept", {{"stretches", stretches}, {"count", count}});
        !checked)
      return checked;
    const auto accepted = own.accept(sequence, last);
    if (!accepted)
      return accepted.error();
    *count = accepted->size();
    *stretches = makeArray<deft_stretch>(std::span(*accepted), [](const deft::Stretch &stretch) {
      return deft_stretch{.location = stretch.location, .tokens = stretch.tokens};
    });
    return {};
  });
}

deft_status deft_tree_place(deft_tree *tree, int32_t node, int32_t location) {
  return changeTree(__func__, tree, [&](deft::Tree &own) { return own.place(node, location); });
}

deft_status deft_tree_add_query(deft_tree *tree, int32_t node, int32_t position, int32_t *query) {
  return changeTree(__func__, tree,
                    [&](deft::Tree &own) { return give(own.addQuery(node, positionOf(position)), query); });
}

deft_status deft_tree_remove_query(deft_tree *tree, int32_t query) {
  return changeTree(__func__, tree, [&](deft::Tree &own) { return own.removeQuery(query); });
}

deft_status deft_tree_set_queries(deft_tree *tree, const deft_query *queries, size_t count) {
  return changeTree(__func__, tree, [&](deft::Tree &own) -> deft::Result<void> {
    if (!queries && count > 0)
      return usage("deft_tree_set_queries: queries is null");
    return own.setQueries(queriesOf(queries, count));
  });
}

deft_status deft_tree_clear_queries(deft_tree *tree) {
  return changeTree(__func__, tree, [&](deft::Tree &own) -> deft::Result<void> {
    own.clearQueries();
    return {};
  });
}

int32_t deft_tree_is_alive(const deft_tree *tree, int32_t node) {
  return ask(__func__, {"tree", tree}, 0, [&] { return tree->seen->isAlive(node); });
}

deft_status deft_tree_get_node(const deft_tree *tree, int32_t node, deft_node *facts) {
  return call(__func__, {{"tree", tree}, {"facts", facts}}, [&]() -> deft::Result<void> {
    if (!tree->seen->isAlive(node))
      return usage("there is no living node " + std::to_string(node));
    const deft::Node own = tree->seen->node(node);
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
  clearPlace(nodes);
  return call(__func__, {{"tree", tree}, {"nodes", nodes}, {"count", count}}, [&]() -> deft::Result<void> {
    const std::vector<int> own = tree->seen->nodesInPreorder();
    *count = own.size();
    *nodes = makeArray<int32_t>(std::span(own), [](int node) { return node; });
    return {};
  });
}

int32_t deft_tree_query_count(const deft_tree *tree) {
  return ask(__func__, {"tree", tree}, 0, [&] { return tree->seen->queryCount(); });
}

deft_status deft_tree_get_query(const deft_tree *tree, int32_t query, deft_query *facts) {
  return call(__func__, {{"tree", tree}, {"facts", facts}}, [&]() -> deft::Result<void> {
    if (query < 0 || query >= tree->seen->queryCount())
      return usage("there is no query " + std::to_string(query) + ", the tree has " +
                   std::to_string(tree->seen->queryCount()));
    const deft::Query own = tree->seen->query(query);
    *facts = {.node = own.node, .position = own.position};
    return {};
  });
}

int32_t deft_tree_path_tokens(const deft_tree *tree, int32_t query) {
  return ask(__func__, {"tree", tree}, 0, [&] { return tree->seen->pathTokens(query); });
}

int64_t deft_tree_tokens(const deft_tree *tree) {
  return ask<int64_t>(__func__, {"tree", tree}, 0, [&] { return tree->seen->tokens(); });
}
