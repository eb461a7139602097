"""DeepSeek V2 and V3 with random weights: what decodes over latents is what transformers makes of K and V of its own."""

import math

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

import deft
from deft.hf import DraftModel, LatentKind, LayerPlan, TreeDecoder, beam_search, greedy, layer_kinds, recall, speculate
from deft.hf._ranks import heads_of_rank
from hf_models import DEVICE, LATENT_ARCHITECTURES, SIZES, Judge, eager_logits, make_config, make_model, random_tokens

every_architecture = pytest.mark.parametrize("architecture", LATENT_ARCHITECTURES)
PROMPT = random_tokens(37)


def generated(model, prompt, count, **options):
    """By transformers' generate, over a cache of its own."""
    tokens = torch.tensor([prompt], device=model.device)
    seen = torch.ones_like(tokens)  # else it takes tokens for padding
    found = model.generate(tokens, attention_mask=seen, max_new_tokens=count, do_sample=False, eos_token_id=None, pad_token_id=0, **options)
    return found[0, len(prompt) :].tolist()


def check_tokens(model, start, answer):
    """Those of generate. Where the two best tokens are nearer to each other than rounding to 16 bits may move them, either is
    right, and what follows is another text. Gives how many are the same."""
    theirs = generated(model, start, len(answer))
    same = next((index for index, pair in enumerate(zip(answer, theirs)) if pair[0] != pair[1]), len(answer))
    if same < len(answer):
        exact, allowed = Judge(model, torch.float16).expected(start + theirs[:same])
        behind = float(exact[-1].max() - exact[-1][answer[same]])
        assert behind <= 2 * allowed, f"token {same} is {answer[same]}, generate's is {theirs[same]}, {behind} better"
    return same


def decode(decoder, branches, steps):
    """The most probable tokens behind each; gives what came behind where they were."""
    before = [branch.length for branch in branches]
    for _ in range(steps):
        decoder.step(branches, [int(branch.logits.argmax()) for branch in branches])
    return [branch.tokens[length:] for branch, length in zip(branches, before)]


@every_architecture
def test_greedy_tokens_are_those_of_generate(architecture):
    model = make_model(architecture)
    decoder = TreeDecoder(model, pages=16, prefill_chunk=16)
    answer = greedy(decoder, PROMPT, 60).tokens
    assert check_tokens(model, PROMPT, answer) >= 20
    assert len(set(answer)) > 4  # not one token over and over
    assert decoder.sequences.free_pages == 16


@every_architecture
def test_branches_of_one_prompt_have_the_tokens_that_generate_gives_each(architecture):
    model = make_model(architecture)
    decoder = TreeDecoder(model, pages=64)
    prompt = random_tokens(70)
    branches = decoder.fork(decoder.prefill(prompt), 3)
    firsts = random_tokens(3, seed=4)
    decoder.step(branches, firsts)
    decode(decoder, branches, 8)
    deep = decoder.fork(branches[1], 2)
    known = random_tokens(9, seed=5)
    decoder.prefill(known, deep[0])
    decoder.step([deep[1], branches[0], branches[2]], [5, 6, 7])
    decoder.prune(branches[0])
    leaves = [branches[2], *deep]
    starts = [leaf.tokens for leaf in leaves]
    for start, answer in zip(starts, decode(decoder, leaves, 20)):
        assert start[:70] == prompt and start[70] in firsts
        assert check_tokens(model, start, answer) >= 10


def test_a_prompt_is_in_the_cache_once_and_a_token_is_one_row():
    decoder = TreeDecoder(make_model("deepseek_v3"), pages=64)
    assert decoder.cache.pages.shape == (2, 1, 64, 16, 64 + 16)
    root = decoder.prefill(random_tokens(160))
    branches = decoder.fork(root, 8)
    decoder.step(branches, random_tokens(8))
    assert 64 - decoder.sequences.free_pages == 10 + 8
    [summary] = decoder.summary().values()
    assert summary.tokens_read < 8 * 161
    decoder.prune(root)
    assert decoder.sequences.free_pages == 64


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@every_architecture
def test_logits_of_a_tree_of_guesses_are_those_of_their_paths(architecture, dtype):
    model = make_model(architecture, first_k_dense_replace=2)  # another expert, chosen by a tie, would be another model
    decoder = TreeDecoder(model, pages=32, cache_dtype=dtype)
    judge = Judge(model, dtype)
    sequence = decoder.fork(decoder.prefill(PROMPT), 1)[0]
    decoder.step([sequence], [3])
    for step in range(3):
        #   0 - 1 - 3 - 4
        #    \- 2 - 5
        guesses = decoder.verify(sequence, random_tokens(6, seed=step), [-1, 0, 0, 1, 3, 2])
        for guess in guesses:
            judge.check(guess)
        decoder.accept(sequence, guesses[(4, 5, 2)[step]])
    decoder.step([sequence], [4])
    judge.check(sequence)


@pytest.mark.parametrize("architecture", ["deepseek_v2", "deepseek_v3_with_narrow_q"])
def test_a_model_of_16_bits_decodes_in_its_own_type(architecture):
    model = make_model(architecture, torch.bfloat16)
    decoder = TreeDecoder(model, pages=16)
    assert decoder.cache.dtype == torch.bfloat16
    branch = decoder.fork(decoder.prefill(PROMPT), 1)[0]
    for token in random_tokens(12, seed=1):
        decoder.step([branch], [token])
    exact = eager_logits(make_model(architecture), branch.tokens)[-1]
    theirs = float((eager_logits(model, branch.tokens)[-1] - exact).abs().max())
    ours = float((branch.logits.float().cpu() - exact).abs().max())
    assert ours <= 2 * theirs


@pytest.mark.parametrize("architecture", ["deepseek_v2_yarn", "deepseek_v3"])
def test_beams_are_those_of_generate(architecture):
    model = make_model(architecture)
    decoder = TreeDecoder(model, pages=64)
    best = beam_search(decoder, PROMPT, 4, 20)[0]
    assert best.tokens == generated(model, PROMPT, 20, num_beams=4)


@pytest.mark.parametrize("architecture", ["deepseek_v2", "deepseek_v3_yarn"])
def test_drafts_change_no_token(architecture):
    model = make_model(architecture)
    decoder = TreeDecoder(model, pages=32)
    expected = generated(model, PROMPT, 30)
    itself = speculate(decoder, PROMPT, DraftModel(TreeDecoder(model, pages=32), (2, 2, 1)), 30)
    assert itself.tokens == expected
    assert itself.accepted[:-1] == [4] * (itself.steps - 1)
    another = speculate(decoder, PROMPT, DraftModel(TreeDecoder(make_model("llama", seed=7), pages=64), (4, 2)), 30)
    assert another.tokens == expected
    assert decoder.sequences.free_pages == 32


def test_layers_that_read_some_tokens_alone_are_corrected():
    model = make_model("deepseek_v3")
    plan = LayerPlan(budget=12, full=0, select=(0,), keep_first=2, keep_last=4)
    if DEVICE == "cuda":
        with pytest.raises(deft.UsageError, match="rule K8"):
            greedy(TreeDecoder(model, pages=32, layers=plan), PROMPT, 2)
        return
    decoder = TreeDecoder(model, pages=32, layers=plan)
    assert decoder.roles == ["select", "sparse"]
    branch = decoder.fork(decoder.prefill(PROMPT), 1)[0]
    tokens = random_tokens(6, seed=3)
    decoder.step([branch], tokens[:1])
    decoder.step([branch], tokens[1:2])
    assert decoder.correct() == 2
    decoder.prefill(tokens[2:], branch)
    Judge(model, torch.float16).check(branch)
    all_read = TreeDecoder(model, pages=32, layers=LayerPlan(budget=128, full=0, select=(0,), keep_first=2, keep_last=4))
    assert greedy(all_read, PROMPT, 30).tokens == generated(model, PROMPT, 30)
    seen = recall(decoder, PROMPT, 3)
    assert [one.role for one in seen.layers] == ["select", "sparse"]


def test_the_kind_of_a_layer_is_what_its_config_says():
    plain = LatentKind(query_heads=4, latent_dim=64, rope_dim=16, nope_dim=32, value_dim=32, scale=48**-0.5)
    assert layer_kinds(make_config("deepseek_v2")) == layer_kinds(make_config("deepseek_v3_with_narrow_q")) == [plain] * 2
    [kind, _] = layer_kinds(make_config("deepseek_v3_yarn"))
    assert kind.value_dim == 48
    assert kind.scale == pytest.approx(48**-0.5 * (0.1 * math.log(16) + 1) ** 2, rel=1e-12)
    attention = deft.compile(kind.spec("bf16", page_size=32))
    assert (attention.query_heads, attention.key_dim, attention.value_dim) == (4, 80, 64)
    assert attention.value_in_key and attention.page_size == 32


def test_the_model_makes_its_k_and_v_as_before_outside_of_a_step():
    model = make_model("deepseek_v3")
    layers = [layer.self_attn for layer in model.model.layers]
    before = eager_logits(model, PROMPT)
    decoder = TreeDecoder(model, pages=8)
    root = decoder.prefill(PROMPT)

    def fail(*arguments):
        raise RuntimeError

    hook = layers[1].register_forward_pre_hook(fail)
    with pytest.raises(RuntimeError):
        decoder.prefill([3, 4])
    hook.remove()
    assert not any("expand_kv" in vars(layer) for layer in layers)
    assert torch.equal(eager_logits(model, PROMPT), before)
    # A user's own stays theirs.
    own = layers[0].expand_kv
    layers[0].expand_kv = own
    decoder.prune(root)
    decoder.prefill(PROMPT)
    assert vars(layers[0])["expand_kv"] is own


class NotPlain(torch.nn.Linear):
    """As those of quantized models are."""


def test_a_projection_that_is_more_than_its_weights_is_refused():
    model = make_model("deepseek_v2")
    decoder = TreeDecoder(model, pages=8)
    made = model.model.layers[1].self_attn.kv_b_proj
    model.model.layers[1].self_attn.kv_b_proj = NotPlain(made.in_features, made.out_features, bias=False)
    with pytest.raises(deft.UsageError, match="layer 1 has a kv_b_proj of type NotPlain, it cannot be absorbed\n.*dequantize"):
        decoder.prefill(PROMPT)
    assert decoder.sequences.free_pages == 8
    model.model.layers[1].self_attn.kv_b_proj = made.to(torch.bfloat16)
    with pytest.raises(deft.UsageError, match="layer 1 has a kv_b_proj of torch.bfloat16 on [a-z:0]+, q is torch.float32 on"):
        decoder.prefill(PROMPT)


@pytest.mark.skipif(DEVICE == "cpu", reason="graphs are of GPUs")
def test_experts_that_no_graph_captures_are_named():
    model = make_model("deepseek_v3", experts="grouped_mm")
    with pytest.raises(deft.UsageError, match="a CUDA graph cannot capture a step of a DeepseekV3ForCausalLM: .*\n.*graphs=False"):
        greedy(TreeDecoder(model, pages=32), PROMPT, 2)
    assert greedy(TreeDecoder(model, pages=32, graphs=False), PROMPT, 5).tokens == generated(model, PROMPT, 5)


def test_a_layer_that_hands_over_no_latents_is_named():
    [kind, _] = layer_kinds(make_config("deepseek_v2"))
    with pytest.raises(deft.UsageError, match="a Identity of this transformers does not pass its latents"):
        kind.queries(torch.nn.Identity(), torch.zeros(1, 4, 1, 48))  # as layers of transformers 5.0 have no expand_kv


def test_what_latents_have_no_part_in_is_refused():
    with pytest.raises(deft.UsageError, match="latent caches cannot be dealt to 2 ranks"):
        heads_of_rank(layer_kinds(make_config("deepseek_v2")), type("Cut", (), {"tp_size": 2}))
    with pytest.raises(deft.UsageError, match="models of type `deepseek_v32`"):
        layer_kinds(transformers.DeepseekV32Config())
    model = make_model("deepseek_v3_yarn")
    decoder = TreeDecoder(model, pages=8)
    model.model.layers[0].self_attn.scaling = 48**-0.5
    with pytest.raises(deft.UsageError, match="layer 0 has scaling = .*, its config was read as 0.23"):
        decoder.prefill(PROMPT)
    with pytest.raises(deft.Error, match="dim = 40 is not a multiple of 16"):
        TreeDecoder(make_model("deepseek_v2", kv_lora_rank=40), pages=8)
