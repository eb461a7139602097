#include "runtime/api/SequenceTree.h"

#include "runtime/api/Queries.h"
#include "runtime/api/Sized.h"

#include <deft/c/selection.h>

#include <algorithm>
#include <span>

using namespace deft;
using namespace deft::api;
using deft::tree::NodeTokens;
using deft::tree::SequenceTree;
using deft::tree::TokenCopy;

namespace {

/// A change of the sequences, and of the stamp by which plans see it. `change` gives a Result<void>.
template <typename Change>
deft_status change(deft_sequence_tree *sequences, std::initializer_list<Pointer> needed, Change &&change,
                   DEFT_CALLER) {
  const auto changes = [&]() -> Result<void> {
    if (auto checked = checkPointers(needed); !checked)
      return checked;
    const NotedChange noted(sequences->view);
    return change(sequences->sequences);
  };
  return call({{"sequences", sequences}}, changes, function);
}

Result<void> giveCopies(const support::Result<std::vector<TokenCopy>> &copies, deft_token_copy **to,
                        size_t *count) {
  return giveArray(copies, to, count, [](const TokenCopy &copy) {
    return deft_token_copy{.from = copy.from, .to = copy.to, .tokens = copy.tokens};
  });
}

Result<std::vector<NodeTokens>> tokensOf(const deft_node_tokens *tokens, size_t count) {
  if (auto checked = checkArray("tokens", tokens, count); !checked)
    return checked.error();
  std::vector<NodeTokens> own;
  for (const deft_node_tokens &some : std::span(tokens, count))
    own.push_back({some.node, some.first, some.tokens});
  return own;
}

} // namespace

deft_status deft_sequence_tree_make(const deft_pool_options *options, deft_sequence_tree **sequences) {
  return make({{"options", options}}, sequences, [&]() -> Result<std::unique_ptr<deft_sequence_tree>> {
    const auto known = readSized("deft_pool_options", options);
    if (!known)
      return known.error();
    auto made = SequenceTree::make({known->page_size, known->pages});
    if (!made)
      return made.error();
    return std::make_unique<deft_sequence_tree>(std::move(*made));
  });
}

void deft_sequence_tree_destroy(deft_sequence_tree *sequences) { delete sequences; }

const deft_tree *deft_sequence_tree_get_tree(const deft_sequence_tree *sequences) {
  return ask<const deft_tree *>({"sequences", sequences}, nullptr, [&] { return &sequences->view; });
}

deft_status deft_sequence_tree_get_page_table(const deft_sequence_tree *sequences, const int32_t **entries,
                                              size_t *count) {
  return call({{"sequences", sequences}, {"entries", entries}, {"count", count}}, [&] {
    const std::span<const int> table = sequences->sequences.pool().pageTable();
    *entries = table.data();
    *count = table.size();
    return Result<void>();
  });
}

int64_t deft_sequence_tree_slot(const deft_sequence_tree *sequences, int32_t node, int32_t index) {
  return ask<int64_t>({"sequences", sequences}, -1, [&]() -> int64_t {
    const deft::tree::KvTree &tree = sequences->sequences.tree();
    if (!tree.isAlive(node))
      return -1;
    const deft::tree::Node &own = tree.nodes()[static_cast<std::size_t>(node)];
    return index < 0 || index >= own.tokens ? -1 : sequences->sequences.pool().slotOf(own.location + index);
  });
}

int64_t deft_sequence_tree_free_pages(const deft_sequence_tree *sequences) {
  return ask<int64_t>({"sequences", sequences}, 0, [&] { return sequences->sequences.pool().freePages(); });
}

deft_status deft_sequence_tree_add_root(deft_sequence_tree *sequences, int32_t tokens, int32_t *node) {
  return change(sequences, {}, [&](SequenceTree &own) { return give(own.addNode(-1, tokens), node); });
}

deft_status deft_sequence_tree_add_child(deft_sequence_tree *sequences, int32_t parent, int32_t tokens,
                                         int32_t *node) {
  return change(sequences, {}, [&](SequenceTree &own) {
    const auto checked = checkParent(parent);
    return checked ? give(own.addNode(parent, tokens), node) : checked;
  });
}

deft_status deft_sequence_tree_add_token_tree(deft_sequence_tree *sequences, int32_t sequence,
                                              const int32_t *parents, size_t count, int32_t *nodes) {
  return change(sequences, {}, [&](SequenceTree &own) -> Result<void> {
    for (const auto &[name, array] : {Pointer{"parents", parents}, Pointer{"nodes", nodes}})
      if (auto checked = checkArray(name, array, count); !checked)
        return checked;
    const auto added = own.addTokenTree(sequence, std::span(parents, count));
    if (!added)
      return added.error();
    std::copy(added->begin(), added->end(), nodes);
    return {};
  });
}

deft_status deft_sequence_tree_append(deft_sequence_tree *sequences, int32_t leaf, int32_t tokens,
                                      deft_token_copy **copies, size_t *count) {
  clear(copies);
  return change(sequences, {{"copies", copies}, {"count", count}},
                [&](SequenceTree &own) { return giveCopies(own.append(leaf, tokens), copies, count); });
}

deft_status deft_sequence_tree_fork(deft_sequence_tree *sequences, int32_t node, int32_t position,
                                    int32_t *branch) {
  return change(sequences, {},
                [&](SequenceTree &own) { return give(own.fork(node, positionOf(position)), branch); });
}

deft_status deft_sequence_tree_prune(deft_sequence_tree *sequences, int32_t node) {
  return change(sequences, {}, [&](SequenceTree &own) { return own.prune(node); });
}

deft_status deft_sequence_tree_accept(deft_sequence_tree *sequences, int32_t sequence, int32_t last,
                                      deft_token_copy **copies, size_t *count) {
  clear(copies);
  return change(sequences, {{"copies", copies}, {"count", count}},
                [&](SequenceTree &own) { return giveCopies(own.accept(sequence, last), copies, count); });
}

// What is polluted changes no plan, so these leave the stamp alone.
deft_status deft_sequence_tree_pollute(deft_sequence_tree *sequences, const deft_node_tokens *tokens,
                                       size_t count) {
  return call({{"sequences", sequences}}, [&]() -> Result<void> {
    const auto given = tokensOf(tokens, count);
    return given ? Result<void>(sequences->sequences.pollute(*given)) : given.error();
  });
}

deft_status deft_sequence_tree_get_polluted(const deft_sequence_tree *sequences, deft_node_tokens **tokens,
                                            size_t *count) {
  clear(tokens);
  return call({{"sequences", sequences}, {"tokens", tokens}, {"count", count}}, [&] {
    giveArray(sequences->sequences.polluted(), tokens, count, [](const NodeTokens &some) {
      return deft_node_tokens{.node = some.node, .first = some.first, .tokens = some.tokens};
    });
    return Result<void>();
  });
}

deft_status deft_sequence_tree_correct(deft_sequence_tree *sequences, const deft_node_tokens *tokens,
                                       size_t count) {
  return call({{"sequences", sequences}}, [&]() -> Result<void> {
    const auto given = tokensOf(tokens, count);
    return given ? Result<void>(sequences->sequences.correct(*given)) : given.error();
  });
}

deft_status deft_sequence_tree_add_query(deft_sequence_tree *sequences, int32_t node, int32_t position,
                                         int32_t *query) {
  return change(sequences, {},
                [&](SequenceTree &own) { return give(own.addQuery(node, positionOf(position)), query); });
}

deft_status deft_sequence_tree_set_queries(deft_sequence_tree *sequences, const deft_query *queries,
                                           size_t count) {
  return change(sequences, {}, [&](SequenceTree &own) -> Result<void> {
    const auto given = queriesOf(queries, count);
    return given ? Result<void>(own.setQueries(*given)) : given.error();
  });
}

deft_status deft_sequence_tree_clear_queries(deft_sequence_tree *sequences) {
  return change(sequences, {}, [&](SequenceTree &own) {
    own.clearQueries();
    return Result<void>();
  });
}
