#include "tuner/bench/KernelRows.h"

namespace deft::bench {

namespace {

// clang-format off
// Latent caches: 512 elements and 64 rotated ones per token, bf16, pages of 64 tokens, with all query heads of a
// model or those of a rank. First the requests of published measurements, then irregular trees, then caches of
// bytes: only e4m3, and with scales in rows of 656 bytes.
#define DEFT_LATENT(NAME, WORKLOAD)                                                                          \
  {NAME "_16", WORKLOAD, "latent_h16"}, {NAME "_64", WORKLOAD, "latent_h64"}, {NAME "_128", WORKLOAD, "latent_h128"}
#define DEFT_LATENT_BYTES(NAME, WORKLOAD)                                                                    \
  {NAME "_16_656", WORKLOAD, "latent_h16_656"}, {NAME "_64_656", WORKLOAD, "latent_h64_656"},              \
  {NAME "_128_656", WORKLOAD, "latent_h128_656"}, {NAME "_16_e4m3", WORKLOAD, "latent_h16_e4m3"},          \
  {NAME "_64_e4m3", WORKLOAD, "latent_h64_e4m3"}, {NAME "_128_e4m3", WORKLOAD, "latent_h128_e4m3"}
constexpr KernelRow kLatent[] = {
    DEFT_LATENT("latent_flat_64x4k", "levels:nodes=64,tokens=4096"),
    DEFT_LATENT("latent_16_below_8k", "levels:nodes=1,16,tokens=8192,256"),
    DEFT_LATENT("latent_64_below_8k", "levels:nodes=1,64,tokens=8192,256"),
    DEFT_LATENT("latent_32_below_32k", "levels:nodes=1,32,tokens=32768,512"),
    DEFT_LATENT("latent_spec_64_of_16k", "token_tree:prompt=16384,tokens=64"),
    {"latent_few_shot_8", "few_shot:prompt=8000,branches=32,step=200", "latent_h8"},
    {"latent_reasoning_8", "reasoning:step=2000", "latent_h8"},
    {"latent_forest_12", "random_forest:nodes=600,roots=4,tokens=128,queries=400", "latent_h12"},
    {"latent_documents_12", "multi_document:step=64", "latent_h12"},
    {"latent_chains_16", "multi_chain:step=150", "latent_h16"},
    {"latent_grpo_64", "grpo:prompts=8,group=16,step=300", "latent_h64"},
    {"latent_forest_128", "random_forest:nodes=600,roots=4,tokens=128,queries=400", "latent_h128"},
    DEFT_LATENT_BYTES("latent_flat_64x4k", "levels:nodes=64,tokens=4096"),
    DEFT_LATENT_BYTES("latent_16_below_8k", "levels:nodes=1,16,tokens=8192,256"),
    DEFT_LATENT_BYTES("latent_64_below_8k", "levels:nodes=1,64,tokens=8192,256"),
    DEFT_LATENT_BYTES("latent_spec_64_of_16k", "token_tree:prompt=16384,tokens=64"),
    {"latent_forest_128_656", "random_forest:nodes=600,roots=4,tokens=128,queries=400", "latent_h128_656"},
};
#undef DEFT_LATENT_BYTES
#undef DEFT_LATENT
// clang-format on

} // namespace

std::span<const KernelRow> latentRows() { return kLatent; }

} // namespace deft::bench
