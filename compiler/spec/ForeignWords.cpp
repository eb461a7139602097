#include "compiler/spec/ForeignWords.h"

#include "compiler/support/NearestName.h"

#include <algorithm>
#include <iterator>

namespace deft::spec {
namespace {

struct Foreign {
  std::string_view theirs, ours;
};

/// Of PyTorch, transformers, vLLM, FlashInfer and CUDA.
constexpr Foreign kNames[] = {{"heads", "query_heads"},
                              {"num_heads", "query_heads"},
                              {"n_heads", "query_heads"},
                              {"q_heads", "query_heads"},
                              {"num_q_heads", "query_heads"},
                              {"num_qo_heads", "query_heads"},
                              {"num_query_heads", "query_heads"},
                              {"num_attention_heads", "query_heads"},
                              {"num_kv_heads", "kv_heads"},
                              {"n_kv_heads", "kv_heads"},
                              {"num_key_value_heads", "kv_heads"},
                              {"head_size", "head_dim"},
                              {"dim_head", "head_dim"},
                              {"d_head", "head_dim"},
                              {"qk_head_dim", "key_dim"},
                              {"head_dim_qk", "key_dim"},
                              {"v_head_dim", "value_dim"},
                              {"head_dim_vo", "value_dim"},
                              {"kv_lora_rank", "dim"},
                              {"head_dim_ckv", "dim"},
                              {"qk_rope_head_dim", "rope"},
                              {"head_dim_kpe", "rope"},
                              {"scaling", "scale"},
                              {"sm_scale", "scale"},
                              {"softmax_scale", "scale"},
                              {"q_idx", "q_pos"},
                              {"kv_idx", "kv_pos"},
                              {"half", "f16"},
                              {"fp16", "f16"},
                              {"float16", "f16"},
                              {"bfloat16", "bf16"},
                              {"float", "f32"},
                              {"fp32", "f32"},
                              {"float32", "f32"},
                              {"int", "i32"},
                              {"int32", "i32"},
                              {"e4m3", "fp8_e4m3"},
                              {"float8_e4m3fn", "fp8_e4m3"},
                              {"e5m2", "fp8_e5m2"},
                              {"float8_e5m2", "fp8_e5m2"}};

constexpr Foreign kOperators[] = {{"and", "&&"}, {"or", "||"}, {"not", "!"}};

/// "" where the word is of no other language.
template <typename Table> std::string_view oursFor(std::string_view word, const Table &table) {
  const auto found = std::find_if(std::begin(table), std::end(table),
                                  [&](const Foreign &foreign) { return foreign.theirs == word; });
  return found == std::end(table) ? std::string_view() : found->ours;
}

} // namespace

std::string suggest(std::string_view name, const std::vector<std::string> &candidates) {
  const std::string_view ours = oursFor(name, kNames);
  if (std::find(candidates.begin(), candidates.end(), ours) != candidates.end())
    return "did you mean `" + std::string(ours) + "`?";
  return support::didYouMean(name, candidates);
}

std::string hintForOperator(std::string_view word) {
  const std::string_view ours = oursFor(word, kOperators);
  return ours.empty() ? "" : "`" + std::string(word) + "` is written `" + std::string(ours) + "`";
}

bool isForeignFp8(std::string_view dtype) {
  return dtype.starts_with("fp8") || dtype.starts_with("float8") || dtype == "f8" || dtype == "e4m3" ||
         dtype == "e5m2";
}

} // namespace deft::spec
