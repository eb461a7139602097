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

/// `dim` and `valueDim` of a row of K and of the output, which `heads` have.
std::vector<Hook> hooks(Random &random, int dim, int valueDim, int heads) {
  const std::string n = std::to_string(random.between(1, 200)), few = std::to_string(random.between(1, 9));
  // Scores are about 1: some caps are met, others are far above.
  const std::string cap = random.oneIn(2) ? few : n;
  const std::string byDim = "f32[" + std::to_string(dim) + "]",
                    byBoth = "f32[" + std::to_string(valueDim * heads) + "]";
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

/// What may stand beside products of 8 bits (rule A12).
bool mayMultiplyBytes(const Hook &hook) {
  return !hasKey(hook) && hook.text.find("  value ") == std::string::npos &&
         hook.text.find("= sigmoid") == std::string::npos;
}

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

/// Lists that a caller hands over (rule K7).
std::string givenLists(std::uint64_t seed, int index) {
  Random random(seed, static_cast<std::uint64_t>(3000 + index));
  return "  select { budget = tune(" + std::to_string(random.between(1, 60)) + ", " +
         std::to_string(random.between(100, 600)) + "); by = caller; }\n";
}

/// Whether it asks nothing of where a token stands, which such lists do not say.
bool goesWithGivenLists(const Hook &hook) {
  for (const char *word : {"kv_pos", "depth", "sliding_window", "attention_sink", "alibi", "chunked",
                           "prefix_lm", "two_way_block"})
    if (hook.text.find(word) != std::string::npos)
      return false;
  return hook.text.find("path") == std::string::npos;
}

/// The names of masks and scores that ask for the dim of all heads, which latent caches have not.
bool namesHeadDim(const Hook &hook) {
  return hook.text.find("head_dim") != std::string::npos || hook.output.find("head_dim") != std::string::npos;
}

std::string inPlaceOf(const std::string &from, const std::string &to, std::string text) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// What a latent cache has behind its page size: of a generator of its own. A third each has q's elements,
/// bytes, and bytes with scales in their rows.
std::string latentElements(std::uint64_t seed, int index, int dim) {
  Random random(seed, static_cast<std::uint64_t>(7000 + index));
  const int kind = random.of({0, 1, 2});
  if (kind == 0)
    return "";
  if (kind == 1)
    return std::string(", dtype = ") + random.of({"fp8_e4m3", "fp8_e4m3", "fp8_e5m2"});
  const int columns = dim % 128 == 0 && random.oneIn(3) ? dim / 8 : dim / 4; // of 4 scales, or of 8
  return ", dtype = fp8_e4m3, scales = " + std::to_string(columns);
}

/// Latent caches of every number of query heads that is somebody's, and of others.
std::string randomLatentSpec(std::uint64_t seed, const SpecOptions &options) {
  std::string text =
      "// Random latent caches of seed " + std::to_string(seed) + ".\nimport \"library.deft\";\n";
  int index = 0;
  for (const int heads : {1, 2, 3, 5, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64, 66, 96, 128})
    for (int time = 0; time < 12; ++time, ++index) {
      if (index % options.every != 0)
        continue;
      Random random(seed, static_cast<std::uint64_t>(5000 + index));
      // Two thirds as models have them.
      const int dim = random.oneIn(3) ? random.of({64, 128, 256, 384}) : 512;
      const int rope = random.oneIn(4) ? random.of({16, 32, 128}) : 64;
      std::vector<Hook> all = hooks(random, 64, 64, heads);
      std::erase_if(all, [&](const Hook &hook) { // GPUs make shorter rows of q
        const bool hasQuery = hook.text.find("  query ") != std::string::npos;
        return hasKey(hook) || namesHeadDim(hook) || (hasQuery && dim + rope > 256) ||
               (options.selects && !goesWithGivenLists(hook));
      });
      const auto named =
          std::find_if(all.begin(), all.end(), [&](const Hook &one) { return one.name == options.hook; });
      const Hook &hook = named != all.end() ? *named
                         : time % 3 == 0
                             ? all[0]
                             : all[static_cast<std::size_t>(random.below(static_cast<int>(all.size())))];
      const std::string dtype = random.of({"f16", "bf16", "bf16"});
      text += "\nattention l" + std::to_string(dim) + "_" + std::to_string(rope) + "_h" +
              std::to_string(heads) + "_" + std::to_string(time) + "_" + hook.name + " {\n";
      text += "  query_heads = " + std::to_string(heads) + ";\n";
      text += "  dtype       = " + dtype + ";\n";
      text += "  kv_cache    = latent(dim = " + std::to_string(dim) + ", rope = " + std::to_string(rope) +
              ", page_size = " + std::to_string(random.of({1, 7, 16, 32, 64, 64})) +
              latentElements(seed, index, dim) + ");\n";
      text += "  scale       = 0.0" + std::to_string(random.between(3, 9)) + ";\n" + hook.text;
      const bool hasLse = hook.hasLse && !random.oneIn(8);
      if (hasLse || !hook.output.empty())
        text += "  output      = " + (hook.output.empty() ? "" : hook.output + " as ") + dtype +
                (hasLse ? " with lse" : "") + ";\n";
      if (options.selects)
        text += givenLists(seed, index);
      text += "}\n";
    }
  return text;
}

/// K of more columns than V, as prompts of latent models have them and others, and of fewer.
std::string randomUnlikeAttentions(std::uint64_t seed, const SpecOptions &options) {
  std::string text;
  int index = 0;
  for (const auto &[keyDim, valueDim] :
       {std::pair(192, 128), std::pair(192, 128), std::pair(96, 64), std::pair(64, 128), std::pair(256, 128),
        std::pair(128, 192), std::pair(160, 80), std::pair(48, 256), std::pair(72, 40), std::pair(40, 64)})
    for (const int ratio : {1, 1, 2, 4, 7, 16}) {
      const int number = index++;
      if (number % options.every != 0)
        continue;
      Random random(seed, static_cast<std::uint64_t>(7000 + number));
      const int kvHeads = random.between(1, ratio <= 2 ? 8 : 2);
      const std::vector<Hook> all = hooks(random, keyDim, valueDim, ratio * 8);
      const auto named =
          std::find_if(all.begin(), all.end(), [&](const Hook &one) { return one.name == options.hook; });
      Hook hook = named != all.end() ? *named
                  : random.oneIn(3)
                      ? all[0]
                      : all[static_cast<std::size_t>(random.below(static_cast<int>(all.size())))];
      if ((hasKey(hook) && keyDim % 16 != 0) ||
          (options.selects && hook.text.find("path &&") != std::string::npos))
        continue;
      hook.text = inPlaceOf("head_dim", "key_dim", hook.text);
      hook.output = inPlaceOf("head_dim", "value_dim", hook.output);
      const std::string dtype = random.of({"f16", "bf16"});
      const bool mayBeBytes = keyDim % 16 == 0 && valueDim % 16 == 0 && !hasKey(hook);
      const std::string cacheDtype = mayBeBytes && (options.isOfBytes || random.oneIn(6)) ? "fp8_e4m3" : "";
      text += "\nattention k" + std::to_string(keyDim) + "_v" + std::to_string(valueDim) + "_r" +
              std::to_string(ratio) + "_" + std::to_string(number) + "_" + hook.name + " {\n";
      text += "  query_heads = " + std::to_string(ratio * kvHeads) + ";\n";
      text += "  kv_heads    = " + std::to_string(kvHeads) + ";\n";
      text += "  key_dim     = " + std::to_string(keyDim) + ";\n";
      text += "  value_dim   = " + std::to_string(valueDim) + ";\n";
      text += "  dtype       = " + dtype + ";\n";
      text += "  kv_cache    = " + layout(random, cacheDtype) + ";\n" + hook.text;
      const bool hasLse = hook.hasLse && !random.oneIn(8);
      if (hasLse || !hook.output.empty())
        text += "  output      = " + (hook.output.empty() ? "" : hook.output + " as ") + dtype +
                (hasLse ? " with lse" : "") + ";\n";
      if (options.selects)
        text += selection(seed, 400 + number);
      text += "}\n";
    }
  return text;
}

} // namespace

std::vector<std::string> hookNames() {
  std::vector<std::string> names;
  Random any(0, 0);
  for (const Hook &hook : hooks(any, 64, 64, 1))
    names.push_back(hook.name);
  names.push_back(kElements);
  return names;
}

std::string randomSpec(std::uint64_t seed, const SpecOptions &options) {
  if (options.isLatent)
    return randomLatentSpec(seed, options);
  std::string text = "// Random attentions of seed " + std::to_string(seed) + ".\nimport \"library.deft\";\n";
  if (options.isUnlike)
    return text + randomUnlikeAttentions(seed, options);
  int index = 0;
  for (const int dim :
       {32, 48, 64, 80, 96, 112, 128, 144, 160, 192, 224, 256, 8, 24, 40, 72, 88, 120, 136, 248})
    for (int ratio = 1; ratio <= 16; ++ratio, ++index) {
      if (index % options.every != 0)
        continue;
      Random random(seed, static_cast<std::uint64_t>(index));
      // Half of all are plain: hooks are tried on every head dim, and plain kernels with every ratio.
      const std::vector<Hook> all = hooks(random, dim, dim, ratio * 8);
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
      if (options.multipliesBytes && ((dim != 96 && dim != 128) || !mayMultiplyBytes(hook)))
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
          options.multipliesBytes ? "fp8_e4m3"
          : dim % 16 == 0 && (options.isOfBytes || bytes.oneIn(4)) && !hasKey(hook)
              ? bytes.of({"fp8_e4m3", "fp8_e5m2"})
              : std::string();
      text += "  kv_cache    = " + layout(random, cacheDtype) + ";\n" + hook.text;
      if (options.multipliesBytes)
        text += "  products    = fp8_e4m3;\n";
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
  return options.multipliesBytes ? text : text + randomUnlikeAttentions(seed, options);
}

} // namespace deft::gpu_test
