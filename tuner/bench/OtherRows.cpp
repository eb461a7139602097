#include "tuner/bench/KernelRows.h"

namespace deft::bench {

namespace {

// clang-format off
// Heads of current models, all kinds of ratios from 1 to 16, and every head dim that kernels support; bf16,
// pages of 16 tokens. Needs no recorded file.
constexpr KernelRow kOther[] = {
    {"few_shot_64_8", "few_shot:prompt=8000,branches=32,step=200", "h64_8_d128"},
    {"spec_64_8", "token_tree:prompt=8000,tokens=64", "h64_8_d128"},
    {"grpo_64_8", "grpo:step=400", "h64_8_d128"},
    {"system_40_8", "system_prompts:step=128", "h40_8_d128"},
    {"documents_40_8", "multi_document:step=64", "h40_8_d128"},
    {"examples_28_4", "multi_few_shot:step=100", "h28_4_d128"},
    {"reasoning_28_4", "reasoning:step=2000", "h28_4_d128"},
    {"spec_28_4", "token_tree:prompt=2000,tokens=256,shape=random", "h28_4_d128"},
    {"chains_24_3", "multi_chain:step=150", "h24_3_d64"},
    {"few_shot_24_3", "few_shot:prompt=4000,branches=64,step=100", "h24_3_d64"},
    {"beams_12_2", "beam_search:prompt=4096,beams=16,step=200", "h12_2_d128"},
    {"spec_12_2", "token_tree:prompt=16000,tokens=128", "h12_2_d128"},
    {"forest_14_2", "random_forest:nodes=600,roots=4,tokens=128,queries=400", "h14_2_d64"},
    {"few_shot_25_5", "few_shot:prompt=2000,branches=40,step=150", "h25_5_d64"},
    {"few_shot_71_71", "few_shot:prompt=2000,branches=20,step=100", "h71_71_d64"},
    {"grpo_32_32", "grpo:prompts=8,group=16,step=300", "h32_32_d96"},
    {"spec_32_32", "token_tree:prompt=4000,tokens=64", "h32_32_d96"},
    {"system_16_16", "system_prompts:requests=64,step=128", "h16_16_d192"},
    {"few_shot_16_8", "few_shot:prompt=4000,branches=32,step=200", "h16_8_d256"},
    {"spec_16_8", "token_tree:prompt=4000,tokens=64", "h16_8_d256"},
    {"mixture_16_1", "mixture:step=100", "h16_1_d256"},
    {"flat_64_8", "no_sharing:requests=64,tokens=4096", "h64_8_d128"},
};

// One prompt and sixteen branches of 20 tokens. The windows are much shorter than the prompt, except in the first
// row of each kind: there the prompt is 1,000 tokens longer than the window. bf16, pages of 16.
constexpr KernelRow kWindows[] = {
    {"w128_and_1k", "levels:nodes=1,16,tokens=1152,20", "h32_8_w128"},
    {"w128_16k", "levels:nodes=1,16,tokens=16384,20", "h32_8_w128"},
    {"w128_64k", "levels:nodes=1,16,tokens=65536,20", "h32_8_w128"},
    {"w128_128k", "levels:nodes=1,16,tokens=131072,20", "h32_8_w128"},
    {"w4096_and_1k", "levels:nodes=1,16,tokens=5120,20", "h32_8_w4096"},
    {"w4096_16k", "levels:nodes=1,16,tokens=16384,20", "h32_8_w4096"},
    {"w4096_64k", "levels:nodes=1,16,tokens=65536,20", "h32_8_w4096"},
    {"w4096_128k", "levels:nodes=1,16,tokens=131072,20", "h32_8_w4096"},
    {"sink4_w4096_and_1k", "levels:nodes=1,16,tokens=5124,20", "h32_8_sink4_w4096"},
    {"sink4_w4096_16k", "levels:nodes=1,16,tokens=16384,20", "h32_8_sink4_w4096"},
    {"sink4_w4096_64k", "levels:nodes=1,16,tokens=65536,20", "h32_8_sink4_w4096"},
    {"sink4_w4096_128k", "levels:nodes=1,16,tokens=131072,20", "h32_8_sink4_w4096"},
};

// A prompt with only new tokens, new tokens after a shared prompt, and a server's batch: 60 requests that decode, and 4
// whose prompts arrive; bf16, pages of 16. Rows of tests/gpu/ragged_peers.py.
constexpr KernelRow kRagged[] = {
    {"prefill_4k", "ragged:shared=0,decodes=0,prefills=1,chunk=4096", "h32_8_new"},
    {"prefill_16k", "ragged:shared=0,decodes=0,prefills=1,chunk=16384", "h32_8_new"},
    {"append_512", "ragged:shared=4000,decodes=0,prefills=1,chunk=512", "h32_8_new"},
    {"mixed_60_4", "ragged:shared=1000,decodes=60,context=1000,prefills=4,chunk=1024", "h32_8_new"},
    // Latent models in the expanded form, K 192 and V 128, on one of 8 ranks and as a whole.
    {"expanded_prefill_4k", "ragged:shared=0,decodes=0,prefills=1,chunk=4096", "expanded_h16_new"},
    {"expanded_prefill_16k", "ragged:shared=0,decodes=0,prefills=1,chunk=16384", "expanded_h16_new"},
    {"expanded_append_512", "ragged:shared=4000,decodes=0,prefills=1,chunk=512", "expanded_h16_new"},
    {"expanded_append_512_h128", "ragged:shared=4000,decodes=0,prefills=1,chunk=512", "expanded_h128_new"},
    {"expanded_256_of_8k_h128", "ragged:shared=8192,decodes=256,context=64,prefills=0", "expanded_h128_new"},
};

// Memory-bound trees, then compute-bound ones.
constexpr KernelRow kVariants[] = {
    {"FS_b20", "levels:nodes=1,20,tokens=4000,200", "h32_8"},
    {"F9_04_g4", "levels:nodes=1,256,tokens=256,32", "h32_8"},
    {"F9_08_g4", "levels:nodes=1,4,16,64,256,1024,tokens=256,8,256,64,32,256", "h32_8"},
    {"F9_10_g4", "levels:nodes=1,2,4,8,16,32,64,128,1024,tokens=16,16,16,16,16,16,16,16,16", "h32_8"},
    {"flat_256x1k", "levels:nodes=256,tokens=1024", "h32_8"},
    {"F9_05_g4", "levels:nodes=1,1024,tokens=2048,32", "h32_8"},
    {"wide_8k", "levels:nodes=1,512,tokens=8192,16", "h32_8"},
    {"spec_t256", "token_tree:prompt=4000,tokens=256", "h32_8"},
};
// clang-format on

constexpr std::string_view kSuffixes[] = {"softcap", "window", "alibi", "sigmoid", "bf16"};

} // namespace

std::span<const KernelRow> otherRows() { return kOther; }
std::span<const KernelRow> windowRows() { return kWindows; }
std::span<const KernelRow> raggedRows() { return kRagged; }
std::span<const KernelRow> variantRows() { return kVariants; }
std::span<const std::string_view> variantSuffixes() { return kSuffixes; }

} // namespace deft::bench
