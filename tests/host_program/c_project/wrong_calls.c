/* What a program of C can do wrong: each call fails with its status, says why in words, and changes nothing.

   usage: wrong_calls PACKAGE */
#include <deft/deft.h>

#include <stdio.h>
#include <string.h>

static int failures;

static void expect(int line, deft_status status, deft_status wanted, const char *words) {
  if (status == wanted && strstr(deft_error_text(), words))
    return;
  fprintf(stderr, "line %d: status %d, not %d; it says:\n%s\nand not:\n%s\n", line, (int)status, (int)wanted,
          deft_error_text(), words);
  ++failures;
}
#define FAILS(call, status, words) expect(__LINE__, call, status, words)

static void hold(int line, int is_true, const char *what) {
  if (is_true)
    return;
  fprintf(stderr, "line %d: not so: %s (%s)\n", line, what, deft_error_text());
  ++failures;
}
#define HOLDS(condition) hold(__LINE__, condition, #condition)

static void wrong_specs(void) {
  static const char unknown_mask[] = "attention mine {\n"
                                     "  query_heads = 4; kv_heads = 2; head_dim = 64;\n"
                                     "  mask = tree && slidng_window(64);\n"
                                     "}\n";
  const deft_compile_options named = {.size = sizeof named, .name = "mine.deft"};
  const deft_compile_options unsized = {.name = "mine.deft"};
  deft_attention *attention = (deft_attention *)&failures;
  FAILS(deft_attention_compile(unknown_mask, &named, &attention), DEFT_DIAGNOSTICS,
        "mine.deft:3:18: error: unknown mask `slidng_window`");
  HOLDS(attention == NULL);
  /* The caret stands under the name. */
  HOLDS(strstr(deft_error_message(), "  mask = tree && slidng_window(64);\n") != NULL);
  HOLDS(strstr(deft_error_message(), "^~~~~~~~~~~~~") != NULL);
  HOLDS(strstr(deft_error_message(), "did you mean `sliding_window`?") != NULL);
  FAILS(deft_attention_compile("attention", NULL, &attention), DEFT_DIAGNOSTICS, "spec:1:");
  FAILS(deft_attention_compile(unknown_mask, &unsized, &attention), DEFT_USAGE,
        "deft_compile_options::size is 0, which no version of it has\n"
        "  = hint: set it to sizeof(deft_compile_options)");
  FAILS(deft_attention_compile_file("no_such.deft", NULL, &attention), DEFT_ENVIRONMENT, "no_such.deft");
  FAILS(deft_attention_load_package("no_such.deftpkg", NULL, &attention), DEFT_ENVIRONMENT,
        "no_such.deftpkg");
}

static void null_handles(void) {
  deft_tree *tree = NULL;
  deft_plan *plan = NULL;
  int32_t node = 5;
  FAILS(deft_attention_compile(NULL, NULL, NULL), DEFT_USAGE, "deft_attention_compile: text is null");
  FAILS(deft_tree_make(NULL), DEFT_USAGE, "deft_tree_make: the place for what is made is null");
  FAILS(deft_tree_add_root(NULL, 1, 0, &node), DEFT_USAGE, "deft_tree_add_root: tree is null");
  HOLDS(node == 5);
  FAILS(deft_plan_make(NULL, NULL, NULL, &plan), DEFT_USAGE, "deft_plan_make: attention is null");
  FAILS(deft_plan_advance(NULL, NULL, NULL), DEFT_USAGE, "deft_plan_advance: plan is null");
  FAILS(deft_runtime_run(NULL, NULL, NULL, NULL, NULL), DEFT_USAGE, "deft_runtime_run: runtime is null");
  FAILS(deft_sequence_tree_make(NULL, NULL), DEFT_USAGE, "deft_sequence_tree_make: options is null");
  FAILS(deft_gpu_plan_run(NULL, NULL, NULL, NULL, NULL), DEFT_USAGE, "deft_gpu_plan_run: plan is null");
  FAILS(deft_paged_batch_update(NULL, NULL), DEFT_USAGE, "deft_paged_batch_update: batch is null");
  FAILS(deft_beam_tree_advance(NULL, NULL, 0, NULL), DEFT_USAGE, "deft_beam_tree_advance: beams is null");
  FAILS(deft_tuner_run(NULL, NULL, NULL), DEFT_USAGE, "deft_tuner_run: tuner is null");
  HOLDS(deft_tree_query_count(NULL) == 0);
  HOLDS(strcmp(deft_error_text(), "deft_tree_query_count: tree is null") == 0);
  HOLDS(deft_sequence_tree_slot(NULL, 0, 0) == -1);
  deft_attention_destroy(NULL);
  deft_plan_destroy(NULL);
  deft_free(NULL);

  HOLDS(deft_tree_make(&tree) == DEFT_OK);
  FAILS(deft_tree_add_child(tree, 3, 1, 0, NULL), DEFT_DIAGNOSTICS,
        "parent 3 of node 0 is not an earlier node");
  HOLDS(deft_tree_add_root(tree, 4, 0, NULL) == DEFT_OK); /* who does not want the number gives no place */
  FAILS(deft_tree_get_query(tree, 0, &(deft_query){0, 0}), DEFT_USAGE, "there is no query 0, the tree has 0");
  HOLDS(deft_tree_tokens(tree) == 4);
  deft_tree_destroy(tree);
}

/* A run of one query that sees four tokens, spoilt in every way. */
static void wrong_tensors(const deft_attention *attention) {
  static uint16_t q[4 * 64], cache[2 * 16 * 2 * 64], out[4 * 64];
  static const int32_t entries[] = {1, 0};
  const int64_t rows[] = {1, 4, 64}, pages[] = {2, 16, 2, 64}, entry_count[] = {2};
  const int64_t two_rows[] = {2, 4, 64}, hnd[] = {2, 2, 16, 64};
  const int64_t apart[] = {512, 128, 1}, every_other[] = {4096, 256, 128, 2},
                backwards[] = {2048, -128, 64, 1}, overlapping[] = {2048, 120, 64, 1};
  const int64_t one_page[] = {1, 16, 2, 64};
  deft_tensor q_tensor = {.size = sizeof q_tensor, .data = q, .dtype = DEFT_BF16, .ndim = 3, .shape = rows};
  deft_tensor k_tensor = {
      .size = sizeof k_tensor, .data = cache, .dtype = DEFT_BF16, .ndim = 4, .shape = pages};
  deft_tensor v_tensor = k_tensor;
  deft_tensor table = {
      .size = sizeof table, .data = (void *)entries, .dtype = DEFT_I32, .ndim = 1, .shape = entry_count};
  deft_tensor out_tensor = {
      .size = sizeof out_tensor, .data = out, .dtype = DEFT_BF16, .ndim = 3, .shape = rows};
  const deft_tensor good_q = q_tensor, good_k = k_tensor, good_out = out_tensor;
  deft_inputs inputs = {
      .size = sizeof inputs, .q = &q_tensor, .k = &k_tensor, .v = &v_tensor, .page_table = &table};
  deft_outputs outputs = {.size = sizeof outputs, .out = &out_tensor};
  deft_plan_options options = {.size = sizeof options, .partition = 99};
  deft_runtime *runtime = NULL;
  deft_tree *tree = NULL;
  deft_plan *plan = NULL;
  int i;
  HOLDS(deft_runtime_make(NULL, &runtime) == DEFT_OK);
  HOLDS(deft_tree_make(&tree) == DEFT_OK);
  HOLDS(deft_tree_add_root(tree, 4, DEFT_NOT_PLACED, NULL) == DEFT_OK);
  HOLDS(deft_tree_add_query(tree, 0, DEFT_WHOLE, NULL) == DEFT_OK);
  FAILS(deft_plan_make(attention, tree, NULL, &plan), DEFT_DIAGNOSTICS, "node 0 of 4 tokens is not placed");
  HOLDS(deft_tree_place(tree, 0, 0) == DEFT_OK);
  FAILS(deft_plan_make(attention, tree, &options, &plan), DEFT_USAGE,
        "deft_plan_options::partition is 99, not between 0 and 8");
  HOLDS(plan == NULL);
  HOLDS(deft_plan_make(attention, tree, NULL, &plan) == DEFT_OK);
  for (i = 0; i < 4 * 64; ++i)
    out[i] = 0x7fff;

#define RUN_FAILS(words)                                                                                     \
  FAILS(deft_runtime_run(runtime, attention, plan, &inputs, &outputs), DEFT_USAGE, words);                   \
  q_tensor = good_q, k_tensor = v_tensor = good_k, out_tensor = good_out
  q_tensor.dtype = DEFT_F32;
  RUN_FAILS("q is float32, `host_program` takes bfloat16");
  q_tensor.shape = two_rows;
  RUN_FAILS("q is [2, 4, 64], it must be [queries, query_heads, head_dim] = [1, 4, 64]");
  q_tensor.ndim = 2;
  RUN_FAILS("q has 2 dimensions, it must be [queries, query_heads, head_dim] = [1, 4, 64]");
  q_tensor.strides = apart;
  RUN_FAILS(
      "q of shape [1, 4, 64] has strides [256, 128, 1], except for the first, which may be larger, they "
      "must be [256, 64, 1]");
  q_tensor.size = 0;
  RUN_FAILS("q: deft_tensor::size is 0");
  q_tensor.device_type = DEFT_DEVICE_CUDA;
  q_tensor.device_id = 3;
  RUN_FAILS("q is in memory of CUDA device 3, the run takes memory of the CPU");
  k_tensor.shape = hnd;
  RUN_FAILS("k is [2, 2, 16, 64], it must be [pages, page_size, kv_heads, head_dim] = [any, 16, 2, 64]");
  v_tensor.strides = every_other;
  RUN_FAILS("v has strides [4096, 256, 128, 2], the last must be 1");
  v_tensor.strides = backwards;
  RUN_FAILS("v has strides [2048, -128, 64, 1], none may be less than 0");
  k_tensor.strides = overlapping;
  RUN_FAILS(
      "k has strides [2048, 120, 64, 1], entries of page_size overlap: they span 128 elements and begin "
      "120 apart");
  v_tensor.shape = one_page;
  RUN_FAILS("v is [1, 16, 2, 64], and k has 2 pages");
  out_tensor.dtype = 0x7f08;
  RUN_FAILS(
      "out is of a type that has no name here, DLPack's code 127 with 8 bits, `host_program` takes bfloat16");
  out_tensor.data = (char *)out + 1;
  RUN_FAILS("out does not begin at a multiple of 2 bytes");
  inputs.k = NULL;
  RUN_FAILS("k is null");
  inputs.k = &k_tensor;
  inputs.page_table = NULL;
  RUN_FAILS("page_table is null, and the cache of `host_program` is paged");
  inputs.page_table = &table;
  HOLDS(deft_tree_append(tree, 0, 1) == DEFT_OK);
  RUN_FAILS("the plan is stale");
  for (i = 0; i < 4 * 64; ++i)
    HOLDS(out[i] == 0x7fff);

  HOLDS(deft_plan_advance(plan, tree, NULL) == DEFT_OK);
  HOLDS(deft_runtime_run(runtime, attention, plan, &inputs, &outputs) == DEFT_OK);
  HOLDS(out[0] == 0); /* the mean of zeros */
  deft_plan_destroy(plan);
  deft_tree_destroy(tree);
  deft_runtime_destroy(runtime);
}

int main(int argc, char **argv) {
  deft_attention *attention = NULL;
  HOLDS(deft_error_text()[0] == '\0');
  if (argc < 2 || deft_attention_load_package(argv[1], NULL, &attention) != DEFT_OK) {
    fprintf(stderr, "usage: wrong_calls PACKAGE (%s)\n", deft_error_text());
    return 2;
  }
  wrong_specs();
  null_handles();
  wrong_tensors(attention);
  deft_attention_destroy(attention);
  puts(failures == 0 ? "every wrong call says what is wrong" : "WRONG");
  return failures == 0 ? 0 : 1;
}
