import gc
import weakref

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

import deft
from deft.hf import LayerPlan, TreeDecoder, beam_search, greedy
from hf_models import ARCHITECTURES, VOCABULARY, Judge, eager_logits, make_model, random_tokens

every_architecture = pytest.mark.parametrize("architecture", ARCHITECTURES)


@every_architecture
def test_greedy_tokens_are_those_of_eager_attention_over_200_steps(architecture):
    model = make_model(architecture, initializer_range=0.12)  # or rounding grows from layer to layer until nothing is clear
    decoder = TreeDecoder(model, pages=32)
    branch = decoder.fork(decoder.prefill(random_tokens(37)), 1)[0]
    given = []
    for _ in range(200):
        given.append(branch.logits)
        decoder.step([branch], [int(branch.logits.argmax())])
    path = branch.tokens
    exact, allowed = Judge(model, torch.float16).expected(path)
    exact = exact[36:-1]
    # Where the two best are nearer to each other than rounding may move them, either is right.
    best_two = exact.topk(2, dim=-1)
    is_clear = best_two.values[:, 0] - best_two.values[:, 1] > 2 * allowed
    chosen = torch.tensor(path[37:])
    assert len(chosen) == 200
    assert is_clear.float().mean() > 0.9
    assert (chosen == best_two.indices[:, 0])[is_clear].all()
    assert float((torch.stack(given).cpu() - exact).abs().max()) <= allowed


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@every_architecture
def test_every_branch_of_a_tree_has_the_logits_of_its_own_path(architecture, dtype):
    model = make_model(architecture)
    decoder = TreeDecoder(model, pages=64, cache_dtype=dtype, prefill_chunk=32)
    judge = Judge(model, dtype)
    root = decoder.prefill(random_tokens(70))  # in chunks, and longer than a window
    judge.check(root)
    branches = decoder.fork(root, 3)
    for step in range(4):
        decoder.step(branches, random_tokens(3, seed=step))
    deep = decoder.fork(branches[1], 2)
    decoder.prefill(random_tokens(20, seed=9), deep[0])
    decoder.step([deep[1], branches[0], branches[2]], [5, 6, 7])
    decoder.prune(branches[0])
    decoder.step([branches[2], *deep], [8, 9, 10])
    for branch in (branches[2], *deep):
        judge.check(branch)
    assert branches[0].logits is None and not branches[0].is_alive


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_model_of_16_bits_decodes_in_its_own_type(dtype):
    model = make_model("llama", dtype)
    decoder = TreeDecoder(model, pages=16)
    assert decoder.cache.dtype == dtype
    branch = decoder.fork(decoder.prefill(random_tokens(40)), 1)[0]
    for token in random_tokens(12, seed=1):
        decoder.step([branch], [token])
    # All else of the model rounds to the same type, too; against its float32 twin neither may be much worse than the other.
    exact = eager_logits(make_model("llama"), branch.tokens)[-1]
    theirs = float((eager_logits(model, branch.tokens)[-1] - exact).abs().max())
    ours = float((branch.logits.float().cpu() - exact).abs().max())
    assert ours <= 2 * theirs


def test_accepted_guesses_are_as_if_decoded_one_by_one():
    model = make_model("gemma2")
    decoder = TreeDecoder(model, pages=64)
    judge = Judge(model, torch.float16)
    sequence = decoder.fork(decoder.prefill(random_tokens(30)), 1)[0]
    decoder.step([sequence], [3])
    for step in range(5):
        #   0 - 1 - 3 - 4
        #    \- 2 - 5
        guesses = decoder.verify(sequence, random_tokens(6, seed=step), [-1, 0, 0, 1, 3, 2])
        for guess in guesses:
            judge.check(guess)
        last = guesses[(4, 5, 0, 3, 2)[step]]
        expected = last.tokens
        decoder.accept(sequence, last)
        assert sequence.tokens == expected
        assert not last.is_alive
    decoder.step([sequence], [4])
    judge.check(sequence)
    assert decoder.sequences.nodes == [sequence.parent.node, sequence.node]


def test_several_sequences_are_verified_in_one_step():
    model = make_model("qwen3")
    decoder = TreeDecoder(model, pages=64)
    judge = Judge(model, torch.float16)
    first, second = decoder.fork(decoder.prefill(random_tokens(30)), 2)
    decoder.step([first, second], [4, 5])
    found = decoder.verify_all([(first, [7, 8, 9], [-1, 0, 0]), (second, [10, 11], [-1, 0])])
    assert [len(one) for one in found] == [3, 2]
    for branch in (*found[0], *found[1]):
        judge.check(branch)


def test_where_nothing_is_guessed_there_are_no_branches():
    decoder = TreeDecoder(make_model("qwen3"), pages=16)
    first, second = decoder.fork(decoder.prefill(random_tokens(20)), 2)
    assert decoder.verify_all([]) == []
    assert decoder.verify(first, [], []) == []
    assert decoder.verify_all([(first, [], []), (second, [], [])]) == [[], []]
    none, [guess] = decoder.verify_all([(first, [], []), (second, [3], [-1])])
    assert none == [] and guess.tokens[-1] == 3
    decoder.step([first], [4])  # nothing hangs below it


def test_a_prompt_is_in_the_cache_once():
    decoder = TreeDecoder(make_model("llama"), pages=64)
    before = decoder.sequences.free_pages
    root = decoder.prefill(random_tokens(160))
    branches = decoder.fork(root, 8)
    decoder.step(branches, random_tokens(8))
    assert before - decoder.sequences.free_pages == 10 + 8
    [summary] = decoder.summary().values()
    assert summary.tokens_read < 8 * 161
    decoder.prune(root)
    assert decoder.sequences.free_pages == before


def test_pruning_upwards_frees_what_nobody_goes_on_from():
    decoder = TreeDecoder(make_model("llama"), pages=64)
    root = decoder.prefill(random_tokens(16))
    left, right = decoder.fork(root, 2)
    decoder.step([left, right], [3, 4])
    deep = decoder.fork(left, 1)[0]
    decoder.step([deep], [5])
    decoder.prune(deep, upwards=True)
    assert not left.is_alive and right.is_alive and root.is_alive
    decoder.prune(right, upwards=True)
    assert root.is_alive and root.children == []


def test_where_pages_run_out_the_error_says_so_and_the_step_can_be_done_again():
    model = make_model("llama")
    decoder = TreeDecoder(model, pages=4)
    root = decoder.prefill(random_tokens(32))
    branches = decoder.fork(root, 3)
    with pytest.raises(deft.Error, match="page"):
        decoder.step(branches, [3, 4, 5])
    decoder.prune(branches.pop())
    decoder.step(branches, [6, 7])
    for branch in branches:
        assert branch.tokens[-1] in (6, 7)
        Judge(model, torch.float16).check(branch)


def tree_of(decoder):
    """Its leaves' paths by their tokens, and what is left of the pages."""
    leaves = [one for root in decoder._roots for one in root.family() if not one.children]
    lengths = [sum(decoder.sequences.node(one.node).tokens for one in leaf.path()) for leaf in leaves]
    return [leaf.tokens for leaf in leaves], lengths, len(decoder.sequences.nodes), decoder.sequences.free_pages


GOING_ON = {
    "step": lambda decoder, branch: decoder.step([branch], [9]) is None or branch,
    "prefill": lambda decoder, branch: decoder.prefill([9, 10], branch),
    "fork": lambda decoder, branch: GOING_ON["step"](decoder, decoder.fork(branch, 1)[0]),
    "verify": lambda decoder, branch: decoder.verify(branch, [9, 10], [-1, 0])[1],
    "accept": lambda decoder, branch: decoder.accept(branch, GOING_ON["verify"](decoder, branch)) or branch,
}


@pytest.mark.parametrize("go_on", GOING_ON.values(), ids=GOING_ON)
def test_whatever_follows_a_step_without_pages_goes_on_from_what_was_there(go_on):
    model = make_model("qwen3")
    decoder = TreeDecoder(model, pages=8)
    root = decoder.prefill(random_tokens(37))
    full, spare = decoder.fork(root, 2)
    decoder.step([full, spare], [5, 6])
    decoder.prefill(random_tokens(14, seed=1), full)  # to its page's last but one token
    new = decoder.fork(root, 3)
    decoder.step(new[:1], [4])
    before = tree_of(decoder)
    decoder.prefill(random_tokens(16, seed=2), decoder.fork(spare, 1)[0])  # another page
    others = tree_of(decoder)
    with pytest.raises(deft.Error, match="page"):
        decoder.step([full, *new], [7, 8, 9, 10])
    assert tree_of(decoder) == others
    decoder.prune(spare.children[0])
    assert tree_of(decoder) == before
    for branch in (full, new[0], new[1]):
        Judge(model, torch.float16).check(go_on(decoder, branch))
        decoder.prune(branch)


def test_a_step_of_a_branch_that_others_go_on_from_leaves_the_others_as_they_were():
    model = make_model("qwen3")
    decoder = TreeDecoder(model, pages=16)
    leaf, inner = decoder.fork(decoder.prefill(random_tokens(37)), 2)
    decoder.step([leaf, inner], [5, 6])
    decoder.fork(inner, 1)
    before = tree_of(decoder)
    with pytest.raises(deft.Error):
        decoder.step([leaf, inner], [7, 8])
    assert tree_of(decoder) == before
    Judge(model, torch.float16).check(GOING_ON["fork"](decoder, leaf))


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("plan", [None, LayerPlan(budget=12, full=0, select=(0,), keep_first=2, keep_last=4)])
def test_a_pass_that_fails_leaves_nothing_behind(plan, error):
    model = make_model("qwen3")
    decoder = TreeDecoder(model, pages=32, layers=plan, prefill_chunk=16, graphs=False)
    left, right = decoder.fork(decoder.prefill(random_tokens(37)), 2)
    decoder.step([left], [5])
    before, logits = tree_of(decoder), left.logits
    passes = iter([True, True])  # a prompt's first chunks may succeed

    def fail(*arguments):
        if not next(passes, False):
            raise error

    hook = model.model.layers[2].register_forward_pre_hook(fail)
    for call in (
        lambda: decoder.prefill(random_tokens(40)),
        lambda: greedy(decoder, random_tokens(40), 4),
        lambda: decoder.prefill([3, 4, 5], left),
        lambda: decoder.prefill([3, 4, 5], right),
        lambda: decoder.step([left, right], [3, 4]),
        lambda: decoder.verify(left, [3, 4, 5], [-1, 0, 0]),
        lambda: decoder.verify_all([(left, [3, 4], [-1, 0]), (right, [5], [-1])]),
    ):
        with pytest.raises(error):
            call()
        assert tree_of(decoder) == before
        assert left.logits is logits
    hook.remove()
    decoder.step([left, right], [6, 7])
    if plan is None:
        for branch in (left, right):
            Judge(model, torch.float16).check(branch)


def test_guesses_that_find_no_pages_leave_nothing_behind():
    decoder = TreeDecoder(make_model("llama"), pages=4)
    first, second = decoder.fork(decoder.prefill(random_tokens(40)), 2)
    nodes = decoder.sequences.nodes
    with pytest.raises(deft.Error, match="page"):
        decoder.verify_all([(first, [3, 4], [-1, 0]), (second, [3, 4], [-1, 0])])
    assert decoder.sequences.nodes == nodes
    assert first.children == []


def test_the_model_attends_as_before_outside_of_a_step():
    model = make_model("llama")
    tokens = random_tokens(12)
    before = eager_logits(model, tokens)
    TreeDecoder(model, pages=8).prefill(tokens)
    assert model.config._attn_implementation == "eager"
    assert torch.equal(eager_logits(model, tokens), before)


def test_a_model_in_training_decodes_without_dropout_and_goes_on_training():
    model = make_model("llama")
    model.model.layers[0].mlp.down_proj = torch.nn.Sequential(model.model.layers[0].mlp.down_proj, torch.nn.Dropout(0.5))
    judge = Judge(model, torch.float16)
    model.train()
    frozen = model.model.layers[1].eval()
    before = [module.training for module in model.modules()]
    decoder = TreeDecoder(model, pages=16)
    branch = decoder.fork(decoder.prefill(random_tokens(20)), 1)[0]
    decoder.step([branch], [3])
    guess = decoder.verify(branch, [4], [-1])[0]
    assert [module.training for module in model.modules()] == before

    def fail(*arguments):
        raise RuntimeError

    hook = model.lm_head.register_forward_pre_hook(fail)
    with pytest.raises(RuntimeError):
        decoder.prefill([3, 4])
    hook.remove()
    assert [module.training for module in model.modules()] == before
    assert model.training and not frozen.training
    model.eval()
    judge.check(branch)
    judge.check(guess)


def test_attention_without_a_tree_says_who_has_one():
    model = make_model("llama")
    model.set_attn_implementation("deft")
    with pytest.raises(deft.UsageError, match="TreeDecoder"):
        model(input_ids=torch.tensor([[3, 4]], device=model.device))


def test_a_layer_that_says_otherwise_than_its_config_is_noticed():
    model = make_model("llama")
    decoder = TreeDecoder(model, pages=8)
    model.model.layers[2].self_attn.scaling = 1.0
    with pytest.raises(deft.UsageError, match="layer 2 has scaling = 1.0"):
        decoder.prefill([3, 4])


def test_what_makes_no_step_is_refused():
    decoder = TreeDecoder(make_model("llama"), pages=8)
    with pytest.raises(deft.UsageError, match="no tokens"):
        decoder.prefill([])
    root = decoder.prefill([3, 4])
    branch = decoder.fork(root, 1)[0]
    with pytest.raises(deft.UsageError, match="2 tokens for 1 branches"):
        decoder.step([branch], [3, 4])
    for branches in ([], [branch, branch]):
        with pytest.raises(deft.UsageError, match="at least one branch, and each once"):
            decoder.step(branches, [3] * len(branches))
    with pytest.raises(deft.UsageError, match="2 parents for 1 tokens"):
        decoder.verify(branch, [3], [-1, 0])
    with pytest.raises(deft.UsageError, match="not below"):
        decoder.accept(branch, root)
    with pytest.raises(deft.Error):
        decoder.step([root], [3])  # others go on from it
    decoder.prune(branch)
    with pytest.raises(deft.UsageError, match="was pruned"):
        decoder.step([branch], [3])
    assert root.logits.shape == (VOCABULARY,)


@pytest.mark.parametrize("token", [VOCABULARY, 9999, -1])
def test_a_token_that_the_model_does_not_know_is_named_before_anything_is_done(token):
    decoder = TreeDecoder(make_model("llama"), pages=16)
    left, right = decoder.fork(decoder.prefill(random_tokens(20)), 2)
    decoder.step([left, right], [3, VOCABULARY - 1])
    before = tree_of(decoder)
    for call in (
        lambda: decoder.prefill([3, 4, token]),
        lambda: decoder.prefill(torch.tensor([3, token]), left),
        lambda: decoder.step([left, right], [3, token]),
        lambda: decoder.verify(left, [3, token], [-1, 0]),
        lambda: decoder.verify_all([(left, [3], [-1]), (right, [token], [-1])]),
        lambda: greedy(decoder, [3, token], 4),
    ):
        with pytest.raises(deft.UsageError, match=f"no token {token} in a vocabulary of {VOCABULARY}"):
            call()
        assert tree_of(decoder) == before


def test_what_is_no_row_of_tokens_is_named():
    model = make_model("llama")
    decoder = TreeDecoder(model, pages=16)
    assert repr(decoder) == f"<deft.hf.TreeDecoder of LlamaForCausalLM: {len(decoder.kinds)} layers, 0 tokens, 16 pages free>"
    for wrong, said in [
        ({"input_ids": [3, 4]}, 'tokens is a dict, .*\n.*pass its \\["input_ids"\\]'),
        ("the sea", 'tokens is a str, .*\n.*pass tokenizer\\(text\\)\\["input_ids"\\]'),
        ([[3, 4]], "tokens is a list, it must be a row of whole numbers\n.*one at a time"),
        (torch.tensor([3.0]), "tokens is a Tensor, it must be a row of whole numbers"),
    ]:
        with pytest.raises(deft.UsageError, match=said):
            greedy(decoder, wrong, 4)
    assert decoder.sequences.free_pages == 16
    with pytest.raises(deft.UsageError, match="a LlamaModel gives no logits"):
        TreeDecoder(model.model)


def test_a_batch_of_prompts_is_not_taken_for_one_prompt():
    decoder = TreeDecoder(make_model("llama"), pages=16)
    root = decoder.prefill(torch.tensor([[3, 4, 5]]))
    assert root.tokens == [3, 4, 5]
    for batch, shape in (([[3, 4, 5], [6, 7, 8]], r"\[2, 3\]"), ([[3], [4]], r"\[2, 1\]")):
        with pytest.raises(deft.UsageError, match=f"tokens of shape {shape} are several prompts"):
            decoder.prefill(torch.tensor(batch))
    branches = decoder.fork(root, 2)
    assert decoder.step(branches, torch.tensor([[3], [4]])).shape == (2, VOCABULARY)  # as torch.multinomial gives them
    for tokens in ([3.5], torch.tensor([3.5])):
        with pytest.raises(deft.UsageError, match="it must be a row of whole numbers"):
            decoder.prefill(tokens)


def test_a_branch_of_another_decoder_is_refused_though_its_node_has_the_same_number():
    model = make_model("llama")
    decoder, other = TreeDecoder(model, pages=16), TreeDecoder(model, pages=16)
    own, foreign = (one.fork(one.prefill(random_tokens(20)), 1)[0] for one in (decoder, other))
    guess = other.verify(other.fork(foreign, 1)[0], [3], [-1])[0]
    assert own.node == foreign.node
    before, others = tree_of(decoder), tree_of(other)
    for call in (
        lambda: decoder.prefill([3], foreign),
        lambda: decoder.step([own, foreign], [3, 4]),
        lambda: decoder.fork(foreign, 2),
        lambda: decoder.prune(foreign),
        lambda: decoder.verify(foreign, [3], [-1]),
        lambda: decoder.verify_all([(own, [3], [-1]), (foreign, [3], [-1])]),
        lambda: decoder.accept(guess.parent, guess),
        lambda: decoder.accept(own, guess),
        lambda: greedy(decoder, guess, 1),
        lambda: beam_search(decoder, guess, 2, 1),
    ):
        with pytest.raises(deft.UsageError, match="another decoder's"):
            call()
        assert tree_of(decoder) == before and tree_of(other) == others


def test_a_decoder_goes_with_the_last_who_uses_it():
    """And its graphs with it: NCCL waits for graphs of its calls before a process may end."""
    decoder = TreeDecoder(make_model("llama"), pages=16)
    branch = decoder.fork(decoder.prefill(random_tokens(20)), 1)[0]
    decoder.step([branch], [3])
    watched = [weakref.ref(one) for one in (decoder, decoder._steps, decoder._steps.plans)]
    gc.collect()
    gc.disable()  # what a cycle holds goes at some time or never
    try:
        del decoder
        assert [one() for one in watched] == [None, None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize("chunk, said", [(0, "prefill_chunk = 0, it must be from 1 to"), (1.5, "prefill_chunk is a float, it must be a whole number")])
def test_a_chunk_of_a_prompt_has_a_token_at_least(chunk, said):
    with pytest.raises(deft.UsageError, match=said):
        TreeDecoder(make_model("llama"), pages=8, prefill_chunk=chunk)


def test_a_number_of_branches_that_cannot_be_is_named():
    decoder = TreeDecoder(make_model("llama"), pages=8)
    root = decoder.prefill(random_tokens(5))
    with pytest.raises(deft.UsageError, match="count = -1, it must be from 0 to"):
        decoder.fork(root, -1)
    with pytest.raises(deft.UsageError, match="count is a float, it must be a whole number"):
        decoder.fork(root, 2.0)
    assert decoder.fork(root, 0) == [] and not root.children
