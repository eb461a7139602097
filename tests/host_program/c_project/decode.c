/* A small server in C99: branches of a prompt decode step by step, fork, end, and verify a draft, in a pool
   of pages. Every output of every step is compared with plain_attention, which knows only the sequences.

   usage: decode [PACKAGE]       without a package the spec is compiled */
#include "plain_attention.h"

#include <deft/deft.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char spec[] = "attention host_program {\n"
                           "  query_heads = 4;\n"
                           "  kv_heads    = 2;\n"
                           "  head_dim    = 64;\n"
                           "  kv_cache    = paged(page_size = 16, order = nhd);\n"
                           "  scale       = 0.25;\n"
                           "  output      = bf16 with lse;\n"
                           "}\n";

enum { PAGE_SIZE = 16, PAGES = 48, TOKEN = KV_HEADS * HEAD_DIM, MOST_TOKENS = 256, MOST_QUERIES = 16 };

/* A sequence as the host remembers it. */
typedef struct branch {
  int32_t node;
  int count;
  int tokens[MOST_TOKENS];
} branch;

static deft_attention *attention;
static deft_runtime *runtime;
static deft_sequence_tree *sequences;
static deft_plan *plan;
static uint16_t keys[PAGES * PAGE_SIZE * TOKEN], values[PAGES * PAGE_SIZE * TOKEN];
static branch asked[MOST_QUERIES]; /* in the order of the queries */
static int asked_count, next_token, next_query, in_place;
static double worst;

static void check(deft_status status) {
  if (status != DEFT_OK) {
    fprintf(stderr, "error: %s\n", deft_error_text());
    exit(1);
  }
}

static void make_copies(deft_token_copy *copies, size_t count) {
  size_t i;
  for (i = 0; i < count; ++i) {
    memmove(&keys[copies[i].to * TOKEN], &keys[copies[i].from * TOKEN],
            (size_t)copies[i].tokens * TOKEN * sizeof *keys);
    memmove(&values[copies[i].to * TOKEN], &values[copies[i].from * TOKEN],
            (size_t)copies[i].tokens * TOKEN * sizeof *values);
  }
  deft_free(copies);
}

/* The last token of a branch, into the cache. */
static void write_token(branch *to, int index_in_node) {
  const int64_t slot = deft_sequence_tree_slot(sequences, to->node, index_in_node);
  const int token = next_token++;
  int i;
  for (i = 0; i < TOKEN; ++i) {
    keys[slot * TOKEN + i] = element(KEY, token, i / HEAD_DIM, i % HEAD_DIM);
    values[slot * TOKEN + i] = element(VALUE, token, i / HEAD_DIM, i % HEAD_DIM);
  }
  to->tokens[to->count++] = token;
}

static int32_t tokens_of(int32_t node) {
  deft_node facts = {.size = sizeof facts};
  check(deft_tree_get_node(deft_sequence_tree_get_tree(sequences), node, &facts));
  return facts.tokens;
}

static void grow(branch *grown) {
  deft_token_copy *copies;
  size_t count;
  const int32_t before = tokens_of(grown->node);
  check(deft_sequence_tree_append(sequences, grown->node, 1, &copies, &count));
  make_copies(copies, count);
  write_token(grown, before);
}

/* At a position of the path, which is `kept` tokens long from the root. */
static branch fork_at(const branch *from, int32_t position, int kept) {
  branch forked = *from;
  check(deft_sequence_tree_fork(sequences, from->node, position, &forked.node));
  forked.count = kept;
  return forked;
}

static branch fork_end(const branch *from) { return fork_at(from, DEFT_WHOLE, from->count); }

/* Queries, plan, run, comparison. */
static void run_step(void) {
  static uint16_t q[MOST_QUERIES * QUERY_HEADS * HEAD_DIM], out[MOST_QUERIES * QUERY_HEADS * HEAD_DIM];
  static float lse[MOST_QUERIES * QUERY_HEADS];
  const int64_t rows[] = {asked_count, QUERY_HEADS, HEAD_DIM};
  const int64_t cache[] = {PAGES, PAGE_SIZE, KV_HEADS, HEAD_DIM};
  const int32_t *entries;
  size_t entry_count;
  deft_query queries[MOST_QUERIES];
  deft_advanced advanced;
  const deft_tree *tree = deft_sequence_tree_get_tree(sequences);
  int i, head, d;
  for (i = 0; i < asked_count; ++i) {
    queries[i].node = asked[i].node;
    queries[i].position = DEFT_WHOLE;
  }
  check(deft_sequence_tree_set_queries(sequences, queries, (size_t)asked_count));
  if (plan) {
    check(deft_plan_advance(plan, tree, &advanced));
    in_place += advanced == DEFT_ADVANCED_IN_PLACE;
  } else {
    check(deft_plan_make(attention, tree, NULL, &plan));
  }
  for (i = 0; i < asked_count * QUERY_HEADS * HEAD_DIM; ++i)
    q[i] =
        element(QUERY, next_query + i / (QUERY_HEADS * HEAD_DIM), i / HEAD_DIM % QUERY_HEADS, i % HEAD_DIM);
  check(deft_sequence_tree_get_page_table(sequences, &entries, &entry_count));
  {
    const int64_t table_shape[] = {(int64_t)entry_count};
    const deft_tensor q_tensor = {
        .size = sizeof q_tensor, .data = q, .dtype = DEFT_BF16, .ndim = 3, .shape = rows};
    const deft_tensor k_tensor = {
        .size = sizeof k_tensor, .data = keys, .dtype = DEFT_BF16, .ndim = 4, .shape = cache};
    const deft_tensor v_tensor = {
        .size = sizeof v_tensor, .data = values, .dtype = DEFT_BF16, .ndim = 4, .shape = cache};
    const deft_tensor table = {.size = sizeof table,
                               .data = (void *)entries, /* only read */
                               .dtype = DEFT_I32,
                               .ndim = 1,
                               .shape = table_shape};
    const deft_tensor out_tensor = {
        .size = sizeof out_tensor, .data = out, .dtype = DEFT_BF16, .ndim = 3, .shape = rows};
    const deft_tensor lse_tensor = {
        .size = sizeof lse_tensor, .data = lse, .dtype = DEFT_F32, .ndim = 2, .shape = rows};
    const deft_inputs inputs = {
        .size = sizeof inputs, .q = &q_tensor, .k = &k_tensor, .v = &v_tensor, .page_table = &table};
    const deft_outputs outputs = {.size = sizeof outputs, .out = &out_tensor, .lse = &lse_tensor};
    check(deft_runtime_run(runtime, attention, plan, &inputs, &outputs));
  }
  for (i = 0; i < asked_count; ++i)
    for (head = 0; head < QUERY_HEADS; ++head) {
      const int row = i * QUERY_HEADS + head;
      double expected[HEAD_DIM], difference = 0, norm = 0, error;
      const double expected_lse =
          plain_attention(next_query + i, head, asked[i].tokens, asked[i].count, expected);
      for (d = 0; d < HEAD_DIM; ++d) {
        const double off = from_bf16(out[row * HEAD_DIM + d]) - expected[d];
        difference += off * off;
        norm += expected[d] * expected[d];
      }
      error = sqrt(difference / norm);
      if (!(fabs(lse[row] - expected_lse) <= 1e-3))
        error = INFINITY;
      if (!(error <= worst)) /* a NaN is not smaller */
        worst = error;
    }
  next_query += asked_count;
  asked_count = 0;
}

/* Four drafted tokens, asked at once; two of them are accepted. */
static void verify_draft(branch *of) {
  static const int32_t parents[] = {DEFT_NO_NODE, 0, 0, 1};
  int32_t nodes[4];
  branch drafts[4];
  deft_token_copy *copies;
  size_t count;
  int i;
  check(deft_sequence_tree_add_token_tree(sequences, of->node, parents, 4, nodes));
  for (i = 0; i < 4; ++i) {
    drafts[i] = parents[i] < 0 ? *of : drafts[parents[i]];
    drafts[i].node = nodes[i];
    write_token(&drafts[i], 0);
    asked[asked_count++] = drafts[i];
  }
  run_step();
  check(deft_sequence_tree_clear_queries(sequences));
  check(deft_sequence_tree_accept(sequences, of->node, nodes[2], &copies, &count));
  make_copies(copies, count);
  drafts[2].node = of->node;
  *of = drafts[2];
}

int main(int argc, char **argv) {
  static branch prompt, branches[8];
  const deft_pool_options pool = {.size = sizeof pool, .pages = PAGES, .page_size = PAGE_SIZE};
  const deft_runtime_options two_threads = {.size = sizeof two_threads, .threads = 2};
  deft_plan_summary summary = {.size = sizeof summary};
  int count = 0, step, i, is_right;
  if (argc > 1)
    check(deft_attention_load_package(argv[1], NULL, &attention));
  else
    check(deft_attention_compile(spec, NULL, &attention));
  check(deft_runtime_make(&two_threads, &runtime));
  check(deft_sequence_tree_make(&pool, &sequences));

  check(deft_sequence_tree_add_root(sequences, 0, &prompt.node));
  for (i = 0; i < 37; ++i)
    grow(&prompt);
  for (; count < 3; ++count)
    branches[count] = fork_end(&prompt);
  for (step = 0; step < 24; ++step) {
    if (step == 5) { /* a branch goes on in two ways */
      const branch parent = branches[1];
      branches[1] = fork_end(&parent);
      branches[count++] = fork_end(&parent);
    }
    if (step == 9) { /* one ends */
      check(deft_sequence_tree_prune(sequences, branches[0].node));
      branches[0] = branches[--count];
    }
    if (step == 13)
      verify_draft(&branches[0]);
    if (step == 17) /* another parts from the middle of the prompt */
      branches[count++] = fork_at(&prompt, 20, 20);
    for (i = 0; i < count; ++i)
      grow(&branches[i]);
    for (i = 0; i < count; ++i)
      asked[asked_count++] = branches[i];
    run_step();
  }
  check(deft_plan_get_summary(plan, &summary));
  /* bf16 keeps 8 bits: a row is off by some 2^-9 when only its output is rounded. */
  is_right = worst <= 1.0 / 128 && in_place > 10 && summary.items > 0;
  printf("%s, version %s: largest error %.2e, %d steps planned in place\n", is_right ? "right" : "WRONG",
         deft_version(), worst, in_place);

  deft_plan_destroy(plan);
  deft_sequence_tree_destroy(sequences);
  deft_runtime_destroy(runtime);
  deft_attention_destroy(attention);
  return is_right ? 0 : 1;
}
