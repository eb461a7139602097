/* Speculative decoding by an engine in C99 with a block table of its own: behind each request stand drafts, a
   tree that deft is told by a mask of bits only when the plan is there. Some branch of it is accepted, its
   tokens move behind the request's, and the next tree comes. Every output of every step is compared with
   plain_attention, which knows only the tokens that a draft sees.

   usage: decode_drafts [PACKAGE]      without a package the spec is compiled */
#include "plain_attention.h"

#include <deft/deft.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char spec[] = "attention host_program {\n"
                           "  query_heads = 4; kv_heads = 2; head_dim = 64; scale = 0.25;\n"
                           "  kv_cache = paged(page_size = 16, order = nhd);\n"
                           "  output   = bf16 with lse;\n"
                           "}\n";

enum { PAGE_SIZE = 16, ROWS = 5, ROW_PAGES = 12, PROMPT_PAGES = 2, TOKEN = KV_HEADS * HEAD_DIM };
enum { PAGES = PROMPT_PAGES + ROWS * (ROW_PAGES - PROMPT_PAGES), ROW_TOKENS = ROW_PAGES * PAGE_SIZE };
enum { MOST_DRAFTS = 70, WORDS = (MOST_DRAFTS + 31) / 32, STEPS = 12, NOBODY = -1 };

typedef struct request {
  int32_t length; /* without drafts */
  int32_t drafts;
  int parent[MOST_DRAFTS]; /* of each draft; NOBODY: the request's last token */
  int tokens[ROW_TOKENS];  /* drafts behind the request's own */
} request;

static deft_attention *attention;
static deft_runtime *runtime;
static deft_paged_batch *batch;
static deft_plan *plan;
static uint16_t keys[PAGES * PAGE_SIZE * TOKEN], values[PAGES * PAGE_SIZE * TOKEN];
static int32_t table[ROWS * ROW_PAGES];
static request requests[ROWS];
static uint32_t bits[ROWS][MOST_DRAFTS][WORDS];
static unsigned random_state = 1;
static int next_token, next_query, accepted;
static double worst;

static void check(deft_status status) {
  if (status != DEFT_OK) {
    fprintf(stderr, "error: %s\n", deft_error_text());
    exit(1);
  }
}

static int below(int end) {
  random_state = random_state * 1664525u + 1013904223u;
  return (int)((random_state >> 8) % (unsigned)end);
}

static int slot(int row, int position) {
  return table[row * ROW_PAGES + position / PAGE_SIZE] * PAGE_SIZE + position % PAGE_SIZE;
}

static void write_token(int row, int position, int token) {
  const int at = slot(row, position);
  int i;
  for (i = 0; i < TOKEN; ++i) {
    keys[at * TOKEN + i] = element(KEY, token, i / HEAD_DIM, i % HEAD_DIM);
    values[at * TOKEN + i] = element(VALUE, token, i / HEAD_DIM, i % HEAD_DIM);
  }
  requests[row].tokens[position] = token;
}

/* A tree of drafts, parents before their children or behind them, and its mask. Rows of nobody say anything.
 */
static void guess(int row, int drafts) {
  request *const own = &requests[row];
  int order[MOST_DRAFTS], i, at, word;
  own->drafts = drafts;
  for (i = 0; i < drafts; ++i) {
    const int j = below(i + 1);
    order[i] = order[j];
    order[j] = i;
    write_token(row, own->length + i, next_token++);
  }
  for (i = 0; i < drafts; ++i) {
    const int above = below(i < 4 ? i + 1 : 2 * i) - 1; /* more of them near the request */
    own->parent[order[i]] = above < 0 || above >= i ? order[0] : order[above];
    if (i == 0 || below(6) == 0)
      own->parent[order[i]] = NOBODY;
  }
  for (i = 0; i < MOST_DRAFTS; ++i) {
    for (word = 0; word < WORDS; ++word)
      bits[row][i][word] = i < drafts ? 0 : 0x5a5a5a5au;
    for (at = i < drafts ? i : NOBODY; at != NOBODY; at = own->parent[at])
      bits[row][i][at / 32] |= (uint32_t)1 << at % 32;
  }
}

/* The way to some draft becomes the request's. */
static void accept_some(int row) {
  request *const own = &requests[row];
  int way[MOST_DRAFTS], count = 0, at, i, tokens[MOST_DRAFTS];
  if (own->drafts == 0)
    return;
  for (at = below(own->drafts); at != NOBODY; at = own->parent[at])
    way[count++] = at;
  for (i = 0; i < count; ++i)
    tokens[i] = own->tokens[own->length + way[count - 1 - i]];
  for (i = 0; i < count; ++i)
    write_token(row, own->length + i, tokens[i]);
  own->length += count;
  accepted += count;
}

static void judge(const request *of, int draft, const uint16_t *out, const float *lse) {
  int seen[ROW_TOKENS], count = 0, at, head, d;
  for (at = draft; at != NOBODY; at = of->parent[at])
    seen[count++] = of->tokens[of->length + at];
  for (at = 0; at < of->length; ++at)
    seen[count++] = of->tokens[at];
  for (head = 0; head < QUERY_HEADS; ++head) {
    double expected[HEAD_DIM], difference = 0, norm = 0, error;
    const double expected_lse = plain_attention(next_query, head, seen, count, expected);
    for (d = 0; d < HEAD_DIM; ++d) {
      const double off = from_bf16(out[head * HEAD_DIM + d]) - expected[d];
      difference += off * off;
      norm += expected[d] * expected[d];
    }
    error = sqrt(difference / norm);
    if (!(fabs(lse[head] - expected_lse) <= 1e-3))
      error = INFINITY;
    if (!(error <= worst)) /* a NaN is not smaller */
      worst = error;
  }
  ++next_query;
}

static void run_step(int only_grew) {
  static uint16_t q[ROWS * MOST_DRAFTS * QUERY_HEADS * HEAD_DIM],
      out[ROWS * MOST_DRAFTS * QUERY_HEADS * HEAD_DIM];
  static float lse[ROWS * MOST_DRAFTS * QUERY_HEADS];
  const deft_page_table pages = {
      .size = sizeof pages, .entries = table, .entry_count = ROWS * ROW_PAGES, .row_stride = ROW_PAGES};
  int32_t lengths[ROWS], drafts[ROWS];
  int row, draft, total = 0, query = 0, i;
  for (row = 0; row < ROWS; ++row) {
    lengths[row] = requests[row].length;
    drafts[row] = requests[row].drafts;
    total += drafts[row];
  }
  if (only_grew) {
    check(deft_paged_batch_grow(batch, &pages, lengths, ROWS));
  } else {
    const deft_paged_requests step = {
        .size = sizeof step, .table = &pages, .count = ROWS, .lengths = lengths, .drafts = drafts};
    check(deft_paged_batch_update(batch, &step));
  }
  if (plan)
    check(deft_plan_advance(plan, deft_paged_batch_get_tree(batch), NULL));
  else
    check(deft_paged_batch_make_plan(batch, attention, NULL, &plan));
  for (i = 0; i < total * QUERY_HEADS * HEAD_DIM; ++i)
    q[i] =
        element(QUERY, next_query + i / (QUERY_HEADS * HEAD_DIM), i / HEAD_DIM % QUERY_HEADS, i % HEAD_DIM);
  {
    const int64_t bits_shape[] = {ROWS, MOST_DRAFTS, WORDS}, row_shape[] = {total, QUERY_HEADS, HEAD_DIM};
    const int64_t table_shape[] = {ROWS * ROW_PAGES}, cache[] = {PAGES, PAGE_SIZE, KV_HEADS, HEAD_DIM};
    const deft_tensor bits_tensor = {
        .size = sizeof bits_tensor, .data = bits, .dtype = DEFT_U32, .ndim = 3, .shape = bits_shape};
    const deft_draft_mask mask = {.size = sizeof mask, .bits = &bits_tensor};
    const deft_tensor q_tensor = {
        .size = sizeof q_tensor, .data = q, .dtype = DEFT_BF16, .ndim = 3, .shape = row_shape};
    const deft_tensor k_tensor = {
        .size = sizeof k_tensor, .data = keys, .dtype = DEFT_BF16, .ndim = 4, .shape = cache};
    const deft_tensor v_tensor = {
        .size = sizeof v_tensor, .data = values, .dtype = DEFT_BF16, .ndim = 4, .shape = cache};
    const deft_tensor entries = {
        .size = sizeof entries, .data = table, .dtype = DEFT_I32, .ndim = 1, .shape = table_shape};
    const deft_tensor out_tensor = {
        .size = sizeof out_tensor, .data = out, .dtype = DEFT_BF16, .ndim = 3, .shape = row_shape};
    const deft_tensor lse_tensor = {
        .size = sizeof lse_tensor, .data = lse, .dtype = DEFT_F32, .ndim = 2, .shape = row_shape};
    const deft_inputs inputs = {
        .size = sizeof inputs, .q = &q_tensor, .k = &k_tensor, .v = &v_tensor, .page_table = &entries};
    const deft_outputs outputs = {.size = sizeof outputs, .out = &out_tensor, .lse = &lse_tensor};
    check(deft_plan_draft(plan, &mask));
    check(deft_runtime_run(runtime, attention, plan, &inputs, &outputs));
  }
  for (row = 0; row < ROWS; ++row)
    for (draft = 0; draft < requests[row].drafts; ++draft, ++query)
      judge(&requests[row], draft, &out[query * QUERY_HEADS * HEAD_DIM], &lse[query * QUERY_HEADS]);
}

int main(int argc, char **argv) {
  const deft_paged_batch_options options = {
      .size = sizeof options, .page_size = PAGE_SIZE, .check_entries = DEFT_CHECK_ALWAYS};
  int step, row, page, i, is_right;
  if (argc > 1)
    check(deft_attention_load_package(argv[1], NULL, &attention));
  else
    check(deft_attention_compile(spec, NULL, &attention));
  check(deft_runtime_make(NULL, &runtime));
  check(deft_paged_batch_make(&options, &batch));
  for (row = 0; row < ROWS; ++row) {
    for (page = 0; page < ROW_PAGES; ++page)
      table[row * ROW_PAGES + page] =
          page < PROMPT_PAGES ? page : PROMPT_PAGES + row * (ROW_PAGES - PROMPT_PAGES) + page - PROMPT_PAGES;
    requests[row].length = PROMPT_PAGES * PAGE_SIZE + 3 * row;
    for (i = 0; i < requests[row].length; ++i)
      write_token(row, i, i < PROMPT_PAGES * PAGE_SIZE ? i : 1000 * (row + 1) + i);
  }
  next_token = 10000;
  for (step = 0; step < STEPS; ++step) {
    const int keeps_counts = step % 3 == 2;
    for (row = 0; row < ROWS; ++row) {
      if (step > 0)
        accept_some(row);
      if (!keeps_counts) {
        const int room = ROW_TOKENS - requests[row].length;
        requests[row].drafts = row == 0 ? 1 : below(room < MOST_DRAFTS ? room : MOST_DRAFTS);
      } else if (requests[row].drafts > ROW_TOKENS - requests[row].length) {
        fputs("the program has too few pages\n", stderr);
        return 1;
      }
      guess(row, requests[row].drafts);
    }
    run_step(keeps_counts);
  }
  /* bf16 keeps 8 bits: a row is off by some 2^-9 when only its output is rounded. */
  is_right = worst <= 1.0 / 128 && next_query > 500 && accepted > 50;
  printf("%s: largest error %.2e, %d drafts in %d steps, %d accepted\n", is_right ? "right" : "WRONG", worst,
         next_query, STEPS, accepted);

  deft_plan_destroy(plan);
  deft_paged_batch_destroy(batch);
  deft_runtime_destroy(runtime);
  deft_attention_destroy(attention);
  return is_right ? 0 : 1;
}
