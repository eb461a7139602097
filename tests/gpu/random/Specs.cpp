#include "tests/gpu/random/Specs.h"

#include "tests/gpu/random/Random.h"

#include <algorithm>
#include <vector>

namespace deft::gpu_test {

namespace {

/// What an attention does to scores, queries and outputs; the empty one is plain.
struct Hook {
  std::string name, text;
  bool hasLse = true;
  std::string output = {}; ///< an element of it; empty: as it is
};

std::vector<Hook> hooks(Random &random, int dim = 64, int heads = 1) {
  const std::string n = std::to_string(random.between(1, 200)), few = std::to_string(random.between(1, 9));
  // Scores are about 1: some caps are met, others are far above.
  const std::string cap = random.oneIn(2) ? few : n;
  const std::string byDim = "f32[" + std::to_string(dim) + "]",
                    byBoth = "f32[" + std::to_string(dim * heads) + "]";
  return {
      {"plain", ""},
      {"softcap", "  param cap   : f32 = " + cap + ".5;\n  score       = softcap(s, cap);\n"},
      {"window", "  param window : i32 = " + n + ";\n  mask        = tree && sliding_window(window);\n"},
      {"fixed_window", "  mask        = tree && sliding_window(" + n + ");\n"},
      {"alibi", "  param slope : f32[query_heads];\n  score       = alibi(s, slope);\n"},
      {"caps_and_slopes",
       "  param bend  : f32[query_heads];\n  param slope : f32[query_heads];\n  let cap     = " + few +
           " + abs(bend[head]);\n  score       = softcap(s, cap) - slope[head] * (q_pos - kv_pos);\n"},
      {"sink", "  mask        = tree && attention_sink(" + few + ", " + n + ");\n"},
      {"depth", "  param penalty : f32[kv_heads];\n  score       = s - penalty[kv_head] * min(depth, 8);\n"},
      {"window_and_one_far_behind",
       "  mask        = tree && (kv_pos == q_pos - " + n + " || kv_pos > q_pos - " + few + ");\n"},
      {"window_and_band_behind", "  mask        = tree && ((kv_pos > q_pos - " + n + " && kv_pos < q_pos - " +
                                     n + " + " + few + ") || kv_pos > q_pos - " + few + ");\n"},
      {"by_head", "  mask        = tree && (head % 3 != kv_pos % 3 || kv_pos % " + n + " == 0);\n"},
      {"by_query", "  mask        = tree && (query % 2 == 0 || kv_pos % 4 != query % 4);\n"},
      {"constant", "  score       = 0." + few + ";\n"},
      {"of_kv_head", "  param level : f32[kv_heads];\n  score       = level[kv_head];\n"},
      {"of_row", "  param level : f32[query_heads];\n  score       = level[head] * (q_pos % 7);\n"},
      {"of_token",
       "  mask        = tree && kv_pos % 3 != 1;\n  score       = 0.125 * (kv_pos % 5 + depth);\n"},
      {"learned_sink",
       "  param logit : f32[query_heads];\n  normalize   = softmax with sink(2 * logit[head] + 1);\n"},
      {"sink_and_window", "  param logit : f32[kv_heads];\n  normalize   = softmax with sink(logit[kv_head] "
                          "- 0.1 * head);\n  mask        "
                          "= tree && sliding_window(" +
                              n + ");\n"},
      {"blocks", "  mask        = tree && (floor_div(kv_pos, " + few + ") == floor_div(q_pos, " + few +
                     ") || floor(kv_pos / " + n + ".0) == 0);\n"},
      {"by_chunk", "  mask        = tree && chunked(" + n +
                       ");\n  score       = s * (1 + 0.1 * log(1 + floor((q_pos + 1) / 16)));\n"},
      {"rope", "  query       = rope(x, x_half, 10000.0);\n"},
      {"rope_of_neighbours",
       "  param rate  : " + byDim +
           ";\n  query       = rotate_pairs(x, x_pair, q_pos * rate[floor_div(dim, 2)]);\n"},
      {"normed_rope", "  param weight : " + byDim +
                          ";\n  let partner = weight[(dim + floor_div(head_dim, 2)) % head_dim];\n" +
                          "  query       = rope(rms_norm(weight[dim], 0.00001), rms_norm_half(partner, "
                          "0.00001), 1000000.0);\n"},
      {"temperature_in_window", "  query       = x * (1 + 0.1 * log(1 + floor((q_pos + 1) / 16)));\n  mask   "
                                "     = tree && sliding_window(" +
                                    n + ");\n"},
      {"query_by_head",
       "  param bend  : f32[kv_heads];\n  query       = x + bend[kv_head] - 0.125 * (head % 3);\n"},
      {"turned_keys",
       "  query       = rope(x, x_half, 10000.0);\n  key         = rope(x, x_half, 10000.0);\n"},
      {"normed_keys",
       "  param weight : " + byDim +
           ";\n  let partner = weight[(dim + floor_div(head_dim, 2)) % head_dim];\n  key         = "
           "rope(rms_norm(weight[dim], 0.00001), rms_norm_half(partner, 0.00001), 1000000.0);\n  mask        "
           "= tree && sliding_window(" +
           n + ");\n"},
      {"keys_of_neighbours",
       "  param level : f32[kv_heads];\n  key         = rope_pairs(x, x_pair, 500.0) * (1 + "
       "level[kv_head]);\n"},
      {"gated", "  param gate  : " + byBoth + ";\n", true, "x * sigmoid(gate[head * head_dim + dim])"},
      {"scaled_value", "  param scales : f32[kv_heads];\n  query       = -x;\n", true, "x * scales[kv_head]"},
      {"gated_sink", "  param logit : f32[query_heads];\n  normalize   = softmax with sink(logit[head]);\n",
       true, "x * (1 + 0.5 * (q_pos % 3)) + 0.125 * (dim % 2)"},
      {"gated_sigmoid", "  query       = 0.5 * x;\n  normalize   = sigmoid(-2.5);\n", false,
       "x * (1 + head % 2)"},
      {"documents", "  param doc   : i32[tokens];\n  param own   : i32[queries];\n  mask        = tree && "
                    "same_document(doc, own);\n"},
      {"weighed_tokens", "  param gain  : f32[tokens];\n  score       = s + 0.5 * gain[token];\n"},
      {"documents_in_window",
       "  param doc   : i32[tokens];\n  param own   : i32[queries];\n  param gain  : "
       "f32[tokens];\n  mask        = tree && sliding_window(" +
           n + ") && doc[token] != own[query];\n  score       = s * (1 + abs(gain[token]));\n"},
      {"scaled_rows", "  param k_scale : f32[tokens, kv_heads];\n  param v_scale : f32[tokens, kv_heads];\n  "
                      "score       = s * (0.5 + abs(k_scale[token, kv_head]));\n  value       = x * (0.125 "
                      "+ abs(v_scale[token, kv_head]));\n"},
      {"signed_values_in_window",
       "  param v_scale : f32[tokens, kv_heads];\n  param gain  : f32[tokens];\n  mask        = tree && "
       "sliding_window(" +
           n + ");\n  value       = -x * v_scale[token, kv_head] / (1 + abs(gain[token]));\n"},
      {"values_by_position",
       "  param by_head : f32[kv_heads];\n  value       = x * (1 + by_head[kv_head] * by_head[kv_head] + "
       "0.25 * (kv_pos % 3) + 0.125 * depth);\n  normalize   = softmax with sink(0.5 * head);\n"},
      {"sigmoid_of_scaled_values",
       "  param v_scale : f32[tokens, kv_heads];\n  value       = x * v_scale[token, kv_head];\n  normalize  "
       " = sigmoid(-2.5);\n",
       false},
      {"bent_query", "  param bend  : f32[queries];\n  query       = x + 0.25 * bend[query];\n"},
      {"sigmoid_of_tokens", "  param gain  : f32[tokens];\n  normalize   = sigmoid(gain[token] - 2.5);\n",
       false},
      {"constant_sigmoid", "  score       = 0." + few + ";\n  normalize   = sigmoid(-2.5);\n", false},
      {"sigmoid", "  normalize   = sigmoid(-2.5);\n", false},
      {"prefix", "  param prefix : i32 = " + n + ";\n  mask        = path && prefix_lm(prefix);\n"},
      {"window_behind_a_stretch", "  mask        = path && ((kv_pos <= q_pos && kv_pos >= " + few +
                                      " && kv_pos > q_pos - " + few + ") || kv_pos >= " + n + ");\n"},
      {"whole_path", "  mask        = path;\n  score       = s - 0.01 * abs(kv_pos - q_pos);\n"},
      {"both_ways", "  mask        = path && abs(kv_pos - q_pos) <= " + n + ";\n"},
      {"image_in_window", "  mask        = path && (kv_pos > q_pos - " + n + " && two_way_block(" + few +
                              ", " + few + " + " + n +
                              "));\n  normalize   = softmax with sink(0.5 * head);\n"},
      {"by_head_on_a_path",
       "  mask        = path && (kv_pos <= q_pos || head % 2 == 0);\n  normalize   = sigmoid(-2.5);\n",
       false},
      {"sigmoid_alibi",
       "  param slope : f32[query_heads];\n  score       = alibi(s, slope);\n  normalize   = "
       "sigmoid(-2.5);\n",
       false},
      {"sigmoid_window",
       "  mask        = tree && sliding_window(" + n +
           ");\n  normalize   = sigmoid(-log(max(q_pos + 1, 1)));\n",
       false},
  };
}

/// All hooks of elements, one after the other.
constexpr const char *kElements = "elements";

bool hasKey(const Hook &hook) { return hook.text.find("  key ") != std::string::npos; }

std::vector<Hook> ofElements(std::vector<Hook> all) {
  std::erase_if(all, [](const Hook &hook) {
    return hook.output.empty() && hook.text.find("  query ") == std::string::npos && !hasKey(hook);
  });
  return all;
}

/// `dtype`: of K and V; empty: q's.
std::string layout(Random &random, const std::string &dtype) {
  if (random.oneIn(6)) // which takes no dtype
    return dtype.empty() ? "contiguous" : "paged(page_size = 32, dtype = " + dtype + ")";
  const std::string ofDtype = dtype.empty() ? "" : ", dtype = " + dtype;
  return "paged(page_size = " + std::to_string(random.of({1, 7, 16, 64})) +
         ", order = " + random.of({"nhd", "hnd"}) + ofDtype + ")";
}

/// Of a generator of its own, too. Lists that siblings read as one are the most common ones.
std::string selection(std::uint64_t seed, int index) {
  Random random(seed, static_cast<std::uint64_t>(3000 + index));
  const int first = random.of({0, 0, 1, 4}), last = random.of({0, 1, 8, 30});
  const std::string few = std::to_string(first + last + random.between(1, 60));
  return "  select { budget = tune(" + few + ", " + std::to_string(random.between(100, 600)) +
         "); by = " + random.of({"kv_head", "kv_head", "query", "query_head"}) +
         "; keep_first = " + std::to_string(first) + "; keep_last = " + std::to_string(last) + "; }\n";
}

} // namespace

std::vector<std::string> hookNames() {
  std::vector<std::string> names;
  Random any(0, 0);
  for (const Hook &hook : hooks(any))
    names.push_back(hook.name);
  names.push_back(kElements);
  return names;
}

std::string randomSpec(std::uint64_t seed, const SpecOptions &options) {
  std::string text = "// Random attentions of seed " + std::to_string(seed) + ".\nimport \"library.deft\";\n";
  int index = 0;
  for (const int dim :
       {32, 48, 64, 80, 96, 112, 128, 144, 160, 192, 224, 256, 8, 24, 40, 72, 88, 120, 136, 248})
    for (int ratio = 1; ratio <= 16; ++ratio, ++index) {
      if (index % options.every != 0)
        continue;
      Random random(seed, static_cast<std::uint64_t>(index));
      // Half of all are plain: hooks are tried on every head dim, and plain kernels with every ratio.
      const std::vector<Hook> all = hooks(random, dim, ratio * 8);
      const auto named =
          std::find_if(all.begin(), all.end(), [&](const Hook &one) { return one.name == options.hook; });
      const Hook &drawn = random.oneIn(2)
                              ? all[0]
                              : all[static_cast<std::size_t>(random.below(static_cast<int>(all.size())))];
      const std::vector<Hook> elements = ofElements(all);
      const Hook &hook = named != all.end() ? *named
                         : options.hook == kElements
                             ? elements[static_cast<std::size_t>(index / options.every) % elements.size()]
                             : drawn;
      if (hasKey(hook) && dim % 16 != 0)
        continue; // no GPU's family makes keys of such rows
      if (options.selects && hook.text.find("path &&") != std::string::npos)
        continue;
      const int kvHeads = random.between(1, ratio <= 2 ? 8 : ratio <= 5 ? 4 : 2);
      const std::string dtype = random.of({"f16", "bf16"});
      text += "\nattention d" + std::to_string(dim) + "_r" + std::to_string(ratio) + "_" + hook.name + " {\n";
      text += "  query_heads = " + std::to_string(ratio * kvHeads) + ";\n";
      text += "  kv_heads    = " + std::to_string(kvHeads) + ";\n";
      text += "  head_dim    = " + std::to_string(dim) + ";\n";
      text += "  dtype       = " + dtype + ";\n";
      // Of a generator of its own: other draws stay what they are.
      Random bytes(seed, static_cast<std::uint64_t>(2000 + index));
      const std::string cacheDtype = // no GPU's family makes keys of bytes
          dim % 16 == 0 && (options.isOfBytes || bytes.oneIn(4)) && !hasKey(hook)
              ? bytes.of({"fp8_e4m3", "fp8_e5m2"})
              : std::string();
      text += "  kv_cache    = " + layout(random, cacheDtype) + ";\n" + hook.text;
      const bool hasLse = hook.hasLse && !random.oneIn(8);
      const std::string outputDtype = hasLse && random.oneIn(6) ? random.of({"f16", "bf16"}) : dtype;
      if (hasLse || !hook.output.empty())
        text += "  output      = " + (hook.output.empty() ? "" : hook.output + " as ") + outputDtype +
                (hasLse ? " with lse" : "") + ";\n";
      if (hook.name == "softcap") // of scores that are about 1 otherwise, and take one way of several
        if (Random scales(seed, static_cast<std::uint64_t>(1000 + index)); scales.oneIn(2))
          text += std::string("  scale       = ") + scales.of({"0.01", "0.3", "0.6"}) + ";\n";
      if (options.selects)
        text += selection(seed, index);
      text += "}\n";
    }
  return text;
}

} // namespace deft::gpu_test
