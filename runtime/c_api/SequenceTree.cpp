#include "runtime/c_api/Handles.h"
#include "runtime/c_api/Made.h"
#include "runtime/c_api/Queries.h"
#include "runtime/c_api/Sized.h"

#include <algorithm>

using namespace deft::c;

namespace {

/// A call that changes sequences; `change` gives a Result of it.
template <typename Change>
deft_status changeSequences(const char *function, deft_sequence_tree *sequences, Change &&change) {
  return call(function, {{"sequences", sequences}},
              [&]() -> deft::Result<void> { return change(sequences->sequences); });
}

std::vector<deft::NodeTokens> tokensOf(const deft_node_tokens *tokens, size_t count) {
  std::vector<deft::NodeTokens> own;
  for (size_t i = 0; i < count; ++i)
    own.push_back({.node = tokens[i].node, .first = tokens[i].first, .tokens = tokens[i].tokens});
  return own;
}

/// A call that changes sequences and says what the host must copy.
template <typename Change>
deft_status changeWithCopies(const char *function, deft_sequence_tree *sequences, deft_token_copy **copies,
                             size_t *count, Change &&change) {
  clearPlace(copies);
  return call(function, {{"sequences", sequences}, {"copies", copies}, {"count", count}},
              [&]() -> deft::Result<void> {
                const deft::Result<std::vector<deft::TokenCopy>> made = change(sequences->sequences);
                if (!made)
                  return made.error();
                *count = made->size();
                *copies = makeArray<deft_token_copy>(std::span(*made), [](const deft::TokenCopy &copy) {
                  return deft_token_copy{.from = copy.from, .to = copy.to, .tokens = copy.tokens};
                });
                return {};
              });
}

} // namespace

deft_status deft_sequence_tree_make(const deft_pool_options *options, deft_sequence_tree **sequences) {
  return make(__func__, {{"options", options}}, sequences, [&]() -> deft::Result<deft::SequenceTree> {
    const auto known = readSized("deft_pool_options", options);
    if (!known)
      return known.error();
    return deft::SequenceTree::make({.pageSize = known->page_size, .pages = known->pages});
  });
}

void deft_sequence_tree_destroy(deft_sequence_tree *sequences) { delete sequences; }

const deft_tree *deft_sequence_tree_get_tree(const deft_sequence_tree *sequences) {
  return ask<const deft_tree *>(__func__, {"sequences", sequences}, nullptr,
                                [&] { return &sequences->tree; });
}

deft_status deft_sequence_tree_get_page_table(const deft_sequence_tree *sequences, const int32_t **entries,
                                              size_t *count) {
  return call(__func__, {{"sequences", sequences}, {"entries", entries}, {"count", count}},
              [&]() -> deft::Result<void> {
                const std::span<const int> table = sequences->sequences.pageTable();
                *entries = table.data();
                *count = table.size();
                return {};
              });
}

int64_t deft_sequence_tree_slot(const deft_sequence_tree *sequences, int32_t node, int32_t index) {
  return ask<int64_t>(__func__, {"sequences", sequences}, -1,
                      [&] { return sequences->sequences.slot(node, index); });
}

int64_t deft_sequence_tree_free_pages(const deft_sequence_tree *sequences) {
  return ask<int64_t>(__func__, {"sequences", sequences}, 0,
                      [&] { return sequences->sequences.freePages(); });
}

deft_status deft_sequence_tree_add_root(deft_sequence_tree *sequences, int32_t tokens, int32_t *node) {
  return changeSequences(__func__, sequences,
                         [&](deft::SequenceTree &own) { return give(own.addRoot(tokens), node); });
}

deft_status deft_sequence_tree_add_child(deft_sequence_tree *sequences, int32_t parent, int32_t tokens,
                                         int32_t *node) {
  return changeSequences(__func__, sequences,
                         [&](deft::SequenceTree &own) { return give(own.addChild(parent, tokens), node); });
}

deft_status deft_sequence_tree_add_token_tree(deft_sequence_tree *sequences, int32_t sequence,
                                              const int32_t *parents, size_t count, int32_t *nodes) {
  return call(__func__, {{"sequences", sequences}, {"parents", parents}, {"nodes", nodes}},
              [&]() -> deft::Result<void> {
                const auto added = sequences->sequences.addTokenTree(sequence, std::span(parents, count));
                if (!added)
                  return added.error();
                std::copy(added->begin(), added->end(), nodes);
                return {};
              });
}

deft_status deft_sequence_tree_append(deft_sequence_tree *sequences, int32_t leaf, int32_t tokens,
                                      deft_token_copy **copies, size_t *count) {
  return changeWithCopies(__func__, sequences, copies, count,
                          [&](deft::SequenceTree &own) { return own.append(leaf, tokens); });
}

deft_status deft_sequence_tree_fork(deft_sequence_tree *sequences, int32_t node, int32_t position,
                                    int32_t *branch) {
  return changeSequences(__func__, sequences, [&](deft::SequenceTree &own) {
    return give(own.fork(node, positionOf(position)), branch);
  });
}

deft_status deft_sequence_tree_prune(deft_sequence_tree *sequences, int32_t node) {
  return changeSequences(__func__, sequences, [&](deft::SequenceTree &own) { return own.prune(node); });
}

deft_status deft_sequence_tree_accept(deft_sequence_tree *sequences, int32_t sequence, int32_t last,
                                      deft_token_copy **copies, size_t *count) {
  return changeWithCopies(__func__, sequences, copies, count,
                          [&](deft::SequenceTree &own) { return own.accept(sequence, last); });
}

deft_status deft_sequence_tree_pollute(deft_sequence_tree *sequences, const deft_node_tokens *tokens,
                                       size_t count) {
  return changeSequences(__func__, sequences, [&](deft::SequenceTree &own) -> deft::Result<void> {
    if (!tokens && count > 0)
      return usage("deft_sequence_tree_pollute: tokens is null");
    return own.pollute(tokensOf(tokens, count));
  });
}

deft_status deft_sequence_tree_get_polluted(const deft_sequence_tree *sequences, deft_node_tokens **tokens,
                                            size_t *count) {
  clearPlace(tokens);
  return call(__func__, {{"sequences", sequences}, {"tokens", tokens}, {"count", count}},
              [&]() -> deft::Result<void> {
                const std::vector<deft::NodeTokens> found = sequences->sequences.polluted();
                *count = found.size();
                *tokens = makeArray<deft_node_tokens>(std::span(found), [](const deft::NodeTokens &some) {
                  return deft_node_tokens{.node = some.node, .first = some.first, .tokens = some.tokens};
                });
                return {};
              });
}

deft_status deft_sequence_tree_correct(deft_sequence_tree *sequences, const deft_node_tokens *tokens,
                                       size_t count) {
  return changeSequences(__func__, sequences, [&](deft::SequenceTree &own) -> deft::Result<void> {
    if (!tokens && count > 0)
      return usage("deft_sequence_tree_correct: tokens is null");
    return own.correct(tokensOf(tokens, count));
  });
}

deft_status deft_sequence_tree_add_query(deft_sequence_tree *sequences, int32_t node, int32_t position,
                                         int32_t *query) {
  return changeSequences(__func__, sequences, [&](deft::SequenceTree &own) {
    return give(own.addQuery(node, positionOf(position)), query);
  });
}

deft_status deft_sequence_tree_set_queries(deft_sequence_tree *sequences, const deft_query *queries,
                                           size_t count) {
  return changeSequences(__func__, sequences, [&](deft::SequenceTree &own) -> deft::Result<void> {
    if (!queries && count > 0)
      return usage("deft_sequence_tree_set_queries: queries is null");
    return own.setQueries(queriesOf(queries, count));
  });
}

deft_status deft_sequence_tree_clear_queries(deft_sequence_tree *sequences) {
  return changeSequences(__func__, sequences, [&](deft::SequenceTree &own) -> deft::Result<void> {
    own.clearQueries();
    return {};
  });
}
