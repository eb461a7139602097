#pragma once

#include <deft/c/status.h>

/// The tree (or forest) of cached tokens, and the queries of a step.

DEFT_C_BEGIN

enum {
  /// For a query: all of its node's tokens, including later ones. For a fork: at the node's end.
  DEFT_WHOLE = -1,
  DEFT_NO_NODE = -1, ///< the parent of a root
  /// Location of a node that is not placed.
  DEFT_NOT_PLACED = -1
};

/// A query sees the path to its node: all tokens of the ancestors and the first `position` of the node's own.
/// This struct and the next are elements of arrays, so they never change.
typedef struct deft_query {
  int32_t node;
  int32_t position; ///< or DEFT_WHOLE
} deft_query;

/// Consecutive tokens in the cache.
typedef struct deft_stretch {
  int32_t location;
  int32_t tokens;
} deft_stretch;

/// A node owns a stretch of consecutive tokens. Its path is its ancestors' tokens, then its own.
typedef struct deft_node {
  size_t size;      ///< sizeof(deft_node), set by the caller
  int32_t parent;   ///< or DEFT_NO_NODE
  int32_t tokens;   ///< its own
  int32_t location; ///< the place of its first token (see deft_tree_place), or DEFT_NOT_PLACED
  int32_t depth;    ///< a root has 0
  int32_t position; ///< of its first token on the path, counted from 0
  int32_t reserved; ///< 0
} deft_node;

/// The tree of one decode step, and its changes between steps. Calls return numbers of nodes and queries. A
/// later node may reuse a pruned node's number. A call that fails changes nothing.
///
/// The tree holds no keys or values, only their places: write K and V of new tokens into your cache, at the
/// places that you (or a deft_sequence_tree) chose, before the run that reads them.
///
/// For one thread at a time; several may read at once. The pointer for a returned number may be null.
typedef struct deft_tree deft_tree;

DEFT_C_API deft_status deft_tree_make(deft_tree **tree);
/// An independent tree; it needs its own plans.
DEFT_C_API deft_status deft_tree_copy(const deft_tree *tree, deft_tree **copy);
/// Reads a tree file of `deftc`: {"format": "deftc-tree", "version": 1, "nodes": [...], "queries": [...]}.
/// Without locations in the text, no node is placed.
DEFT_C_API deft_status deft_tree_parse(const char *json, deft_tree **tree);
/// Writes the tree as such a text, without locations. Free `*json` with deft_free.
DEFT_C_API deft_status deft_tree_get_json(const deft_tree *tree, char **json);
/// Its plans may outlive it, but then belong to no tree.
DEFT_C_API void deft_tree_destroy(deft_tree *tree);

/* Building and growing. A node may be empty. A node with tokens must be placed before a plan is made; the
   error of the plan names it otherwise. Until then `location` may be DEFT_NOT_PLACED. */

DEFT_C_API deft_status deft_tree_add_root(deft_tree *tree, int32_t tokens, int32_t location, int32_t *node);
DEFT_C_API deft_status deft_tree_add_child(deft_tree *tree, int32_t parent, int32_t tokens, int32_t location,
                                           int32_t *node);
/// Lets a leaf grow by tokens that follow its last one in the cache. Only leaves grow.
DEFT_C_API deft_status deft_tree_append(deft_tree *tree, int32_t leaf, int32_t tokens);
/// Adds an empty branch that shares the path to `node` up to its first `position` tokens, or all of them with
/// DEFT_WHOLE. If only part of a node is shared, the node is cut in two. Its number then means the second
/// part, so it still means the same path; the first part gets a new number. The branch is not placed.
DEFT_C_API deft_status deft_tree_fork(deft_tree *tree, int32_t node, int32_t position, int32_t *branch);
/// Removes the node, all below it and their queries; the numbers of later queries move up.
DEFT_C_API deft_status deft_tree_prune(deft_tree *tree, int32_t node);
/// Speculative decoding: the tokens from below `sequence` to the end of `last` become the end of `sequence`;
/// everything else below `sequence` is removed, with all queries there. Returns the places of the accepted
/// tokens, in path order: copy their K and V behind the sequence's last token before the next run. Free
/// `*stretches` with deft_free.
DEFT_C_API deft_status deft_tree_accept(deft_tree *tree, int32_t sequence, int32_t last,
                                        deft_stretch **stretches, size_t *count);
/// Sets the place of a node's first token; the others follow it. A location counts tokens in the run's page
/// table: token t is in slot t % page_size of page page_table[t / page_size]. In a contiguous cache it is the
/// token's index. A node may begin inside a page, and two nodes may share one.
DEFT_C_API deft_status deft_tree_place(deft_tree *tree, int32_t node, int32_t location);

/* The queries of the step. Row i of q, out and lse belongs to query i. */

DEFT_C_API deft_status deft_tree_add_query(deft_tree *tree, int32_t node, int32_t position, int32_t *query);
DEFT_C_API deft_status deft_tree_remove_query(deft_tree *tree, int32_t query);
/// Replaces all queries. If they stay equal, a plan stays cheap to advance.
DEFT_C_API deft_status deft_tree_set_queries(deft_tree *tree, const deft_query *queries, size_t count);
DEFT_C_API deft_status deft_tree_clear_queries(deft_tree *tree);

/* Inspection. With a null tree these functions return 0 and set the error message. */

DEFT_C_API int32_t deft_tree_is_alive(const deft_tree *tree, int32_t node);
/// The facts about a living node; DEFT_USAGE for any other.
DEFT_C_API deft_status deft_tree_get_node(const deft_tree *tree, int32_t node, deft_node *facts);
/// The living nodes, parents before children, siblings in order of birth. Free `*nodes` with deft_free.
DEFT_C_API deft_status deft_tree_get_nodes(const deft_tree *tree, int32_t **nodes, size_t *count);
DEFT_C_API int32_t deft_tree_query_count(const deft_tree *tree);
/// DEFT_USAGE if there is no such query.
DEFT_C_API deft_status deft_tree_get_query(const deft_tree *tree, int32_t query, deft_query *facts);
/// How many tokens a query sees; its own position (q_pos in a spec) is one less. 0 if there is no such query.
DEFT_C_API int32_t deft_tree_path_tokens(const deft_tree *tree, int32_t query);
DEFT_C_API int64_t deft_tree_tokens(const deft_tree *tree); ///< of all nodes

DEFT_C_END
