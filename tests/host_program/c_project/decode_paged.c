/* An engine in C99 with a block table of its own: requests come, share the pages of a system prompt, part
   where they write, decode and go, and their rows are overwritten at once. deft finds who shares what. Every
   output of every step is compared with plain_attention, which knows only each request's tokens.

   usage: decode_paged [PACKAGE]       without a package the spec is compiled */
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

enum { PAGE_SIZE = 16, PAGES = 64, ROWS = 8, ROW_PAGES = 6, TOKEN = KV_HEADS * HEAD_DIM, MOST_QUERIES = 64 };
enum { PROMPT_PAGES = 2, NOBODY = -1 };

typedef struct request {
  uint64_t id;
  int32_t row;
  int32_t length;
  int32_t queries; /* in the next step */
  int32_t is_alive;
  int tokens[ROW_PAGES * PAGE_SIZE];
} request;

static deft_attention *attention;
static deft_runtime *runtime;
static deft_paged_batch *batch;
static deft_plan *plan;
static uint16_t keys[PAGES * PAGE_SIZE * TOKEN], values[PAGES * PAGE_SIZE * TOKEN];
static int32_t table[ROWS * ROW_PAGES];
static int users[PAGES];       /* of each page */
static request requests[ROWS]; /* one a row */
static int32_t prompt_pages[PROMPT_PAGES];
static uint64_t last_id;
static int next_token, next_query, in_place;
static double worst, shared;

static void check(deft_status status) {
  if (status != DEFT_OK) {
    fprintf(stderr, "error: %s\n", deft_error_text());
    exit(1);
  }
}

static int32_t take_page(void) {
  int32_t page = 0;
  while (page < PAGES && users[page] > 0)
    ++page;
  if (page == PAGES) {
    fputs("the program has too few pages\n", stderr);
    exit(1);
  }
  users[page] = 1;
  return page;
}

/* A new token into a slot; its number. */
static int write_token(int32_t slot) {
  int i;
  for (i = 0; i < TOKEN; ++i) {
    keys[slot * TOKEN + i] = element(KEY, next_token, i / HEAD_DIM, i % HEAD_DIM);
    values[slot * TOKEN + i] = element(VALUE, next_token, i / HEAD_DIM, i % HEAD_DIM);
  }
  return next_token++;
}

/* A last page that others have, too, is copied before it is written; then the request's pages are others than
   deft knows, so it takes another id. */
static void append(request *to) {
  int32_t *const entry = &table[to->row * ROW_PAGES + to->length / PAGE_SIZE];
  if (to->length % PAGE_SIZE == 0) {
    *entry = take_page();
  } else if (users[*entry] > 1) {
    const int32_t own = take_page();
    memcpy(&keys[own * PAGE_SIZE * TOKEN], &keys[*entry * PAGE_SIZE * TOKEN],
           PAGE_SIZE * TOKEN * sizeof *keys);
    memcpy(&values[own * PAGE_SIZE * TOKEN], &values[*entry * PAGE_SIZE * TOKEN],
           PAGE_SIZE * TOKEN * sizeof *values);
    --users[*entry];
    *entry = own;
    to->id = ++last_id;
  }
  to->tokens[to->length] = write_token(*entry * PAGE_SIZE + to->length % PAGE_SIZE);
  ++to->length;
}

static request *free_row(void) {
  int32_t row;
  for (row = 0; row < ROWS; ++row)
    if (!requests[row].is_alive) {
      requests[row].row = row;
      requests[row].is_alive = 1;
      requests[row].id = ++last_id;
      return &requests[row];
    }
  return NULL;
}

/* All pages of another, the last one until somebody writes. */
static void share(request *to, const request *from, int32_t length) {
  int32_t page;
  for (page = 0; page * PAGE_SIZE < length; ++page)
    ++users[table[to->row * ROW_PAGES + page] = table[from->row * ROW_PAGES + page]];
  memcpy(to->tokens, from->tokens, (size_t)length * sizeof *to->tokens);
  to->length = length;
}

static void end_request(request *ended) {
  int32_t page;
  for (page = 0; page < ROW_PAGES; ++page) {
    int32_t *const entry = &table[ended->row * ROW_PAGES + page];
    if (page * PAGE_SIZE < ended->length)
      --users[*entry];
    *entry = NOBODY; /* at once: the next step reads what it shared through another row */
  }
  ended->is_alive = 0;
}

/* One with the system prompt and a prompt of its own, whose last tokens are asked in one step; then another
   answer to it. */
static void begin_requests(int own_tokens) {
  request *first = free_row(), *second;
  int i;
  if (!first)
    return;
  first->length = 0;
  for (i = 0; i < PROMPT_PAGES; ++i) {
    ++users[table[first->row * ROW_PAGES + i] = prompt_pages[i]];
    first->length += PAGE_SIZE;
  }
  for (i = 0; i < first->length; ++i)
    first->tokens[i] = i; /* the prompt's tokens were the first */
  for (i = 0; i < own_tokens; ++i)
    append(first);
  first->queries = 3;
  second = free_row();
  if (second) {
    share(second, first, first->length);
    second->queries = 1;
  }
}

static void run_step(int only_grew) {
  static uint16_t q[MOST_QUERIES * QUERY_HEADS * HEAD_DIM], out[MOST_QUERIES * QUERY_HEADS * HEAD_DIM];
  static float lse[MOST_QUERIES * QUERY_HEADS];
  const deft_page_table pages = {
      .size = sizeof pages, .entries = table, .entry_count = ROWS * ROW_PAGES, .row_stride = ROW_PAGES};
  deft_sharing_summary sharing = {.size = sizeof sharing};
  int32_t lengths[ROWS], rows[ROWS], query_indptr[ROWS + 1] = {0};
  uint64_t ids[ROWS];
  const request *asked[ROWS];
  size_t count = 0, i;
  int row, head, d, query, total;
  deft_advanced advanced = DEFT_ADVANCED_NOTHING;
  for (row = 0; row < ROWS; ++row)
    if (requests[row].is_alive) {
      asked[count] = &requests[row];
      lengths[count] = requests[row].length;
      rows[count] = row;
      ids[count] = requests[row].id;
      query_indptr[count + 1] = query_indptr[count] + requests[row].queries;
      ++count;
    }
  total = query_indptr[count];
  if (only_grew) {
    check(deft_paged_batch_grow(batch, &pages, lengths, count));
  } else {
    const deft_paged_requests step = {.size = sizeof step,
                                      .table = &pages,
                                      .count = count,
                                      .lengths = lengths,
                                      .query_indptr = query_indptr,
                                      .rows = rows,
                                      .ids = ids};
    check(deft_paged_batch_update(batch, &step));
  }
  if (plan)
    check(deft_plan_advance(plan, deft_paged_batch_get_tree(batch), &advanced));
  else
    check(deft_paged_batch_make_plan(batch, attention, NULL, &plan));
  in_place += advanced == DEFT_ADVANCED_IN_PLACE;
  check(deft_paged_batch_get_summary(batch, &sharing));
  shared = fmax(shared, 1 - (double)sharing.tokens / (double)sharing.request_tokens);

  for (d = 0; d < total * QUERY_HEADS * HEAD_DIM; ++d)
    q[d] =
        element(QUERY, next_query + d / (QUERY_HEADS * HEAD_DIM), d / HEAD_DIM % QUERY_HEADS, d % HEAD_DIM);
  {
    const int64_t row_shape[] = {total, QUERY_HEADS, HEAD_DIM}, table_shape[] = {ROWS * ROW_PAGES};
    const int64_t cache[] = {PAGES, PAGE_SIZE, KV_HEADS, HEAD_DIM};
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
    check(deft_runtime_run(runtime, attention, plan, &inputs, &outputs));
  }
  for (i = 0; i < count; ++i)
    for (query = query_indptr[i]; query < query_indptr[i + 1]; ++query)
      for (head = 0; head < QUERY_HEADS; ++head) {
        const int at = query * QUERY_HEADS + head;
        double expected[HEAD_DIM], difference = 0, norm = 0, error;
        const double expected_lse = plain_attention(next_query + query, head, asked[i]->tokens,
                                                    lengths[i] - (query_indptr[i + 1] - query) + 1, expected);
        for (d = 0; d < HEAD_DIM; ++d) {
          const double off = from_bf16(out[at * HEAD_DIM + d]) - expected[d];
          difference += off * off;
          norm += expected[d] * expected[d];
        }
        error = sqrt(difference / norm);
        if (!(fabs(lse[at] - expected_lse) <= 1e-3))
          error = INFINITY;
        if (!(error <= worst)) /* a NaN is not smaller */
          worst = error;
      }
  next_query += total;
}

int main(int argc, char **argv) {
  const deft_paged_batch_options options = {
      .size = sizeof options, .page_size = PAGE_SIZE, .check_entries = DEFT_CHECK_ALWAYS};
  int step, row, i, is_right;
  if (argc > 1)
    check(deft_attention_load_package(argv[1], NULL, &attention));
  else
    check(deft_attention_compile(spec, NULL, &attention));
  check(deft_runtime_make(NULL, &runtime));
  check(deft_paged_batch_make(&options, &batch));
  for (i = 0; i < ROWS * ROW_PAGES; ++i)
    table[i] = NOBODY;
  for (i = 0; i < PROMPT_PAGES; ++i)
    prompt_pages[i] = take_page();
  for (i = 0; i < PROMPT_PAGES * PAGE_SIZE; ++i)
    write_token(prompt_pages[i / PAGE_SIZE] * PAGE_SIZE + i % PAGE_SIZE);

  for (step = 0; step < 40; ++step) {
    const int changes = step % 5 == 0, follows_change = step % 5 == 1;
    for (row = 0; row < ROWS; ++row) {
      requests[row].queries = 1;
      if (changes && requests[row].is_alive &&
          (requests[row].length > (ROW_PAGES - 1) * PAGE_SIZE || (row + step / 5) % 3 == 0))
        end_request(&requests[row]);
    }
    if (changes)
      begin_requests(5 + step % 11);
    for (row = 0; row < ROWS; ++row)
      if (requests[row].is_alive && requests[row].queries == 1)
        append(&requests[row]);
    /* Behind a step with prompts the number of queries changes once more. */
    run_step(!changes && !follows_change);
  }
  /* bf16 keeps 8 bits: a row is off by some 2^-9 when only its output is rounded. */
  is_right = worst <= 1.0 / 128 && in_place > 10 && shared > 0.3;
  printf("%s: largest error %.2e, %d of 40 steps planned in place, up to %.0f %% of the tokens shared\n",
         is_right ? "right" : "WRONG", worst, in_place, 100 * shared);

  deft_plan_destroy(plan);
  deft_paged_batch_destroy(batch);
  deft_runtime_destroy(runtime);
  deft_attention_destroy(attention);
  return is_right ? 0 : 1;
}
