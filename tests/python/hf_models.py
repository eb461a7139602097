"""Small models of each architecture, with random weights, and what transformers itself makes of them. On a GPU where there is
one: then steps are captured graphs."""

import deft
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

# Trees as small as these gain nothing by threads, which wait for each other where the machine is busy.
deft.set_threads(1)
torch.set_num_threads(1)

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
VOCABULARY = 97
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 1024,
    # So that attention is sharp, and the best token stands out.
    "initializer_range": 0.25,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "tie_word_embeddings": False,
}
WINDOW = 24
ARCHITECTURES = {
    "llama": ("LlamaConfig", {}),
    "mistral": ("MistralConfig", {"sliding_window": WINDOW}),
    "mistral_without_window": ("MistralConfig", {"sliding_window": None}),
    "qwen2": ("Qwen2Config", {}),
    "qwen2_with_windows": ("Qwen2Config", {"use_sliding_window": True, "sliding_window": WINDOW, "max_window_layers": 2}),
    "qwen3": ("Qwen3Config", {}),
    "gemma2": ("Gemma2Config", {"sliding_window": WINDOW, "query_pre_attn_scalar": 48, "attn_logit_softcapping": 5.0}),
    "gemma3": ("Gemma3TextConfig", {"sliding_window": WINDOW, "query_pre_attn_scalar": 40, "sliding_window_pattern": 2}),
}
# Of latent caches: a dense layer, then one of experts.
LATENT_SIZES = {
    **{name: size for name, size in SIZES.items() if name != "head_dim"},
    "num_hidden_layers": 2,
    "num_key_value_heads": 4,
    "kv_lora_rank": 64,
    "qk_rope_head_dim": 16,
    "qk_nope_head_dim": 32,
    "v_head_dim": 32,
    "first_k_dense_replace": 1,
    "moe_intermediate_size": 48,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "n_shared_experts": 1,
    "initializer_range": 0.12,
    "q_lora_rank": None,
}
GROUPS = {"n_group": 2, "topk_group": 1}
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 16.0, "original_max_position_embeddings": 64, "mscale": 1.0, "mscale_all_dim": 1.0}
LATENT_ARCHITECTURES = {
    "deepseek_v2": ("DeepseekV2Config", LATENT_SIZES),
    "deepseek_v2_with_narrow_q": ("DeepseekV2Config", {**LATENT_SIZES, "q_lora_rank": 48}),
    "deepseek_v2_yarn": ("DeepseekV2Config", {**LATENT_SIZES, "rope_parameters": YARN}),
    "deepseek_v3": ("DeepseekV3Config", {**LATENT_SIZES, **GROUPS}),
    "deepseek_v3_with_narrow_q": ("DeepseekV3Config", {**LATENT_SIZES, **GROUPS, "q_lora_rank": 48}),
    "deepseek_v3_yarn": ("DeepseekV3Config", {**LATENT_SIZES, **GROUPS, "rope_parameters": YARN, "v_head_dim": 48}),
}


def make_config(architecture, **sizes):
    if architecture in LATENT_ARCHITECTURES:
        name, fields = LATENT_ARCHITECTURES[architecture]
        return getattr(transformers, name)(**{**fields, **sizes})
    name, fields = ARCHITECTURES[architecture]
    return getattr(transformers, name)(**{**SIZES, **fields, **sizes})


def make_model(architecture, dtype=torch.float32, seed=0, experts="batched_mm", **sizes):
    """`experts`: on a GPU. Of float32, transformers' default ones read their groups' sizes on the host, which no CUDA graph captures."""
    torch.manual_seed(seed)
    chosen = {"experts_implementation": experts} if architecture in LATENT_ARCHITECTURES and DEVICE == "cuda" else {}
    model = transformers.AutoModelForCausalLM.from_config(make_config(architecture, **sizes), attn_implementation="eager", **chosen)
    return model.to(DEVICE, dtype).eval()


def random_tokens(count, seed=0):
    return torch.randint(3, VOCABULARY, (count,), generator=torch.Generator().manual_seed(seed)).tolist()


@torch.no_grad()
def eager_logits(model, tokens):
    """Of each token of a path, by transformers' eager attention, without a cache: [tokens, vocabulary], on the host."""
    assert model.config._attn_implementation.startswith("eager")
    return model(input_ids=torch.tensor([tokens], device=model.device), use_cache=False).logits[0].float().cpu()


class Judge:
    """Holds logits to those of eager attention. What a 16-bit cache may cost is measured, not guessed: at most twice the
    error that eager attention has where its K, V, q and result are rounded to the cache's type, and never less than a step
    of that type at the largest logit."""

    def __init__(self, model, cache_dtype):
        self.model = model
        self.cache_dtype = cache_dtype

    def expected(self, tokens):
        """(logits, the largest error that is allowed)"""
        exact = eager_logits(self.model, tokens)
        _register_rounded(self.cache_dtype)
        self.model.config._attn_implementation = "eager_rounded"
        try:
            plain = eager_logits(self.model, tokens)
        finally:
            self.model.config._attn_implementation = "eager"
        return exact, max(2 * float((plain - exact).abs().max()), torch.finfo(self.cache_dtype).eps * float(exact.abs().max()))

    def check(self, branch):
        exact, allowed = self.expected(branch.tokens)
        error = float((branch.logits.float().cpu() - exact[-1]).abs().max())
        assert error <= allowed, f"logits of {branch} are wrong by {error}, {allowed} is allowed"


def _register_rounded(dtype):
    """Plain attention over 16-bit K, V, q and results, with the masks of eager attention."""

    def attend(module, query, key, value, attention_mask, scaling, softcap=None, **unused):
        def rounded(tensor):
            return tensor.to(dtype).to(torch.float32)

        groups = query.shape[1] // key.shape[1]
        k, v = (rounded(one).repeat_interleave(groups, dim=1) for one in (key, value))
        scores = rounded(query) @ k.transpose(2, 3) * scaling
        if softcap is not None:
            scores = torch.tanh(scores / softcap) * softcap
        if attention_mask is not None:
            scores = scores + attention_mask
        out = rounded(scores.softmax(dim=-1)) @ v
        return rounded(out).transpose(1, 2).contiguous().to(query.dtype), None

    transformers.AttentionInterface.register("eager_rounded", attend)
    transformers.AttentionMaskInterface.register("eager_rounded", transformers.masking_utils.eager_mask)
