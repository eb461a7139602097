#pragma once

#include <string_view>

namespace deft::doctor {

/// A feature of attentions: its name in the support table, and a spec that uses it. A name never changes its
/// meaning, because records and engines refer to it.
struct Feature {
  std::string_view name;
  std::string_view words; ///< for readers
  std::string_view spec;  ///< one attention
};

#define DEFT_GQA(DIM, REST)                                                                                  \
  "attention feature { query_heads = 32; kv_heads = 8; head_dim = " #DIM "; " REST " }"

// clang-format off
inline constexpr Feature kFeatures[] = {
    {"f16", "q, K and V of f16", DEFT_GQA(128, "dtype = f16; output = f16 with lse;")},
    {"bf16", "q, K and V of bf16", DEFT_GQA(128, "")},
    {"head_dim_64", "head dim 64", DEFT_GQA(64, "")},
    {"head_dim_256", "head dim 256", DEFT_GQA(256, "")},
    {"head_dim_72", "head dims that 8 divides, 16 does not (72)", DEFT_GQA(72, "")},
    {"ratio_1", "as many KV heads as query heads", "attention feature { query_heads = 32; kv_heads = 32; head_dim = 128; }"},
    {"ratio_128", "128 query heads for a KV head", "attention feature { query_heads = 128; kv_heads = 1; head_dim = 128; }"},
    {"fp8_e4m3", "8-bit cache, e4m3", DEFT_GQA(128, "kv_cache = paged(dtype = fp8_e4m3);")},
    {"fp8_e5m2", "8-bit cache, e5m2", DEFT_GQA(128, "kv_cache = paged(dtype = fp8_e5m2);")},
    {"fp8_scales", "8-bit cache with scales for each token and KV head",
     DEFT_GQA(128, "kv_cache = paged(dtype = fp8_e4m3); param k : f32[tokens, kv_heads]; param v : f32[tokens, kv_heads]; "
                   "score = s * k[token, kv_head]; value = x * v[token, kv_head];")},
    {"fp8_products", "8-bit cache, e4m3, and products of 8 bits", DEFT_GQA(128, "kv_cache = paged(dtype = fp8_e4m3); products = fp8_e4m3;")},
    {"latent", "latent cache (MLA), 512 + 64", "attention feature { query_heads = 16; kv_cache = latent(dim = 512, rope = 64, page_size = 64); scale = 0.1; output = bf16 with lse; }"},
    {"latent_128_heads", "latent cache with 128 query heads", "attention feature { query_heads = 128; kv_cache = latent(dim = 512, rope = 64); scale = 0.1; }"},
    {"latent_other_dims", "latent cache, other dims (128 + 32)", "attention feature { query_heads = 16; kv_cache = latent(dim = 128, rope = 32); scale = 0.1; }"},
    {"latent_fp8_e4m3", "latent 8-bit cache, e4m3", "attention feature { query_heads = 16; kv_cache = latent(dim = 512, rope = 64, dtype = fp8_e4m3); scale = 0.1; }"},
    {"latent_scales", "latent 8-bit cache with scales in its rows (656 bytes a token)", "attention feature { query_heads = 16; kv_cache = latent(dim = 512, rope = 64, dtype = fp8_e4m3, scales = 128); scale = 0.1; }"},
    {"latent_select", "sparse layers over a latent cache", "attention feature { query_heads = 16; kv_cache = latent(dim = 512, rope = 64); scale = 0.1; select { budget = 2048; by = query; } }"},
    {"latent_given_lists", "sparse layers over a latent cache, lists by `caller`", "attention feature { query_heads = 16; kv_cache = latent(dim = 512, rope = 64); scale = 0.1; select { budget = 2048; by = caller; } }"},
    {"unlike_dims", "K and V of different dims (192 and 128)", "attention feature { query_heads = 16; kv_heads = 16; key_dim = 192; value_dim = 128; }"},
    {"window", "sliding windows", DEFT_GQA(128, "mask = tree && kv_pos > q_pos - 4096;")},
    {"documents", "masks by arrays over tokens and queries", DEFT_GQA(128, "param d : i32[tokens]; param own : i32[queries]; mask = tree && d[token] == own[query];")},
    {"path", "masks bound by `path` (tokens behind the query)", DEFT_GQA(128, "param n : i32; mask = path && (kv_pos <= q_pos || kv_pos < n);")},
    {"softcap", "soft caps", DEFT_GQA(128, "score = 30.0 * tanh(s / 30.0);")},
    {"alibi", "slopes by head", DEFT_GQA(128, "param slope : f32[query_heads]; score = s - slope[head] * (q_pos - kv_pos);")},
    {"sinks", "learned sinks", DEFT_GQA(64, "param sink : f32[query_heads]; normalize = softmax with sink(sink[head]);")},
    {"sigmoid", "sigmoid instead of softmax", DEFT_GQA(128, "normalize = sigmoid;")},
    {"query", "hook `query`", DEFT_GQA(128, "query = x * cos(0.001 * q_pos) + x_half * sin(0.001 * q_pos);")},
    {"key", "hook `key`", DEFT_GQA(128, "key = x * cos(0.001 * kv_pos) + x_half * sin(0.001 * kv_pos);")},
    {"key_fp8", "hook `key` over an 8-bit cache", DEFT_GQA(128, "kv_cache = paged(dtype = fp8_e4m3); key = x * cos(0.001 * kv_pos) + x_half * sin(0.001 * kv_pos);")},
    {"output", "hook `output`", DEFT_GQA(128, "param gate : f32[query_heads]; output = x * gate[head] as bf16;")},
    {"value", "hook `value`", DEFT_GQA(128, "param w : f32[tokens]; value = x * w[token];")},
    {"select", "sparse layers: selection and lists", DEFT_GQA(128, "select { budget = 4096; }")},
};
// clang-format on

#undef DEFT_GQA

} // namespace deft::doctor
