"""Decodes with a transformers model over a tree."""

from __future__ import annotations

import operator
from collections import Counter
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Mapping, Sequence

import torch

from .._adapters.dtypes import SPEC_DTYPES
from .._adapters.ranks import agree_on_configs
from .._arguments import expect_whole, kind_of
from .._beam_tree import BeamTree
from .._errors import UsageError
from .._plans import ConfigChoice, PlanSummary
from .._sequence_tree import SequenceTree
from ..torch_peers import TorchPeers
from ._beam_steps import BeamPlans, BeamSteps
from ._branch import Branch
from ._cache import PagedCache
from ._forward import Forward, Parts, PlannedStep, Result, Rows
from ._growth import growing
from ._kinds import Kind, layer_kinds
from ._layer_plan import LayerPlan, Role, selecting_kind
from ._plans import PageTable, Plans, compile_kinds
from ._pollution import Place, Pollution, tokens_at
from ._ranks import agree, heads_of_rank
from ._selecting_plans import SelectingPlans

Tokens = Sequence[int] | torch.Tensor


class TreeDecoder:
    """Decodes requests that share tokens: a prompt is in the cache once, and each step reads it once for all its
    branches.

        decoder = TreeDecoder(model)
        prompt = decoder.prefill(tokenizer("Once upon")["input_ids"])
        branches = decoder.fork(prompt, 8)
        for _ in range(20):
            next_tokens = [int(branch.logits.argmax()) for branch in branches]
            decoder.step(branches, next_tokens)

    The cache has `pages` pages of `page_size` tokens; a branch starts a page of its own. The cache has the model's dtype. For a
    float32 model it is float16, unless `cache_dtype` says bfloat16. `partition` (of Attention.plan) is for comparisons.
    `layers` says which layers read only some tokens; by default all layers read all tokens. If the model is on a GPU, a step is
    one CUDA graph, unless `graphs=False`. `keeps_hidden` is for heads that draft from the last hidden state. With `peers`
    (deft.torch_peers.TorchPeers, or MappedPeers on GPUs) each rank holds a part of the cache. Every rank has the whole model
    and makes the same calls. `pages` counts each rank's pages, so capacity grows with the ranks. Tokens equal those of a single
    rank. The model stays unchanged; it decodes as in `eval`, even in training mode."""

    #: What the layers of a pass do; for measuring without it.
    STEP = PlannedStep

    def __init__(
        self,
        model: Any,
        *,
        layers: LayerPlan | None = None,
        pages: int = 1024,
        page_size: int = 16,
        cache_dtype: torch.dtype | None = None,
        prefill_chunk: int = 512,
        partition: str | None = None,
        graphs: bool = True,
        keeps_hidden: bool = False,
        peers: TorchPeers | None = None,
    ) -> None:
        self._prefill_chunk = expect_whole("prefill_chunk", prefill_chunk, least=1)
        if model.get_output_embeddings() is None:
            raise UsageError(f"a {type(model).__name__} gives no logits", "take the whole model: AutoModelForCausalLM")
        config = model.config.get_text_config()
        self.model = model
        self.kinds = heads_of_rank(layer_kinds(config), model)
        if cache_dtype is None:
            cache_dtype = torch.float16 if model.dtype == torch.float32 else model.dtype
        self.layers = layers
        #: What each layer does in a step.
        self.roles: list[Role] = layers.roles(self.kinds) if layers else ["full"] * len(self.kinds)
        agree(model)
        if peers and layers:
            raise UsageError("sparse layers choose their tokens on one rank", "leave out layers, or peers")
        self.cache = cache = PagedCache(self.kinds, pages, page_size, cache_dtype, model.device, peers)
        selecting = selecting_kind(self.kinds) if layers else None
        more = {selecting: layers.clause()} if layers and selecting else {}
        if peers:
            agree_on_configs(peers.group)
            more = dict.fromkeys(self.kinds, f"output = {SPEC_DTYPES[cache_dtype]} with lse;")
            for kind in dict.fromkeys(self.kinds):
                peers.reserve(kind.query_heads, kind.run_dim, cache_dtype, model.device)
        self.attentions = attentions = compile_kinds(self.kinds, cache_dtype, page_size, more)
        self._pollution = Pollution(cache.sequences, layers) if layers else None
        self._roots: list[Branch] = []
        self._vocabulary: int = config.vocab_size
        self._parts = parts = Parts(self.model, self.cache, self.kinds, PageTable(self.cache), keeps_hidden, self.STEP)

        roles = self.roles

        # Nothing here may hold the decoder itself: it goes, and its graphs with it, when its last user lets go of it. NCCL
        # waits for graphs that have captured its calls before it lets a process end.
        def make_plans(runs_ahead: Mapping[Kind, int]) -> Plans:
            if selecting is None:
                return Plans(cache, attentions, partition, runs_ahead)
            return SelectingPlans(cache, attentions, partition, runs_ahead, roles, selecting)

        is_captured = graphs and model.device.type == "cuda" and (not peers or peers.can_be_captured)
        all_runs = Counter(self.kinds)

        def forward_of(parts: Parts, make_plans: Callable[[Mapping[Kind, int]], Plans]) -> Any:
            if not is_captured:
                return Forward(parts, make_plans({}))
            from ._captured_forward import CapturedForward

            return CapturedForward(parts, lambda: make_plans(all_runs))

        # Stretches of prompts have plans of their own, and no graph: they would only remake those of steps.
        self._stretches = Forward(parts, Plans(cache, attentions, partition, {}))
        self._steps: Any = forward_of(parts, make_plans)
        self._beams: BeamSteps | None = None
        if not peers and not layers:

            def beams_forward(parts: Parts, beams: BeamTree) -> Any:
                return forward_of(parts, lambda ahead: BeamPlans(cache, attentions, partition, ahead, beams))

            self._beams = BeamSteps(parts, beams_forward)
        self._last_steps = self._steps

    def __repr__(self) -> str:
        kept = self.sequences
        name = type(self.model).__name__
        return f"<deft.hf.TreeDecoder of {name}: {len(self.kinds)} layers, {kept.tokens} tokens, {kept.free_pages} pages free>"

    @property
    def sequences(self) -> SequenceTree:
        """The tree, read-only."""
        return self.cache.sequences

    def summary(self) -> dict[Kind, PlanSummary]:
        """Returns the cost of the last step's plans, for each kind of layer."""
        return self._last_steps.plans.summary()

    def choices(self) -> dict[Kind, ConfigChoice]:
        """Returns the configs of these plans and the reasons for them."""
        return self._last_steps.plans.choices()

    def prefill(self, tokens: Tokens, branch: Branch | None = None) -> Branch:
        """Reads a prompt, or known tokens that follow a leaf `branch`. Returns the branch; its `logits` predict the next token."""
        if isinstance(tokens, torch.Tensor) and tokens.dim() > 1 and tokens.shape[-1] < tokens.numel():
            raise UsageError(f"tokens of shape {list(tokens.shape)} are several prompts", "prefill one at a time")
        tokens = _checked(tokens, self._vocabulary)
        if not tokens:
            raise UsageError("there are no tokens to prefill")
        if branch is None:
            with self._new_root(len(tokens)) as root:
                self._read_behind(root, tokens)
            return root
        branch.check(self.sequences)
        with growing(self.cache, [branch], len(tokens)):
            self._read_behind(branch, tokens)
        return branch

    def correct(self) -> int:
        """Computes the tokens that sparse layers have decoded again, with full attention, and replaces their K and V. Returns
        the number of these tokens. Logits of branches do not change. With `correct_every` in the plan of layers, steps call
        this themselves."""
        stretches = self.sequences.polluted()
        tokens, places = tokens_at(self._roots, stretches)
        if tokens:
            self._read(tokens, places)
        if self._pollution:
            self._pollution.after_correction(stretches)
        return len(tokens)

    def fork(self, branch: Branch, count: int) -> list[Branch]:
        """Makes `count` branches that continue `branch`. `branch` itself no longer grows."""
        branch.check(self.sequences)
        count = expect_whole("count", count, least=0)
        return [Branch(self.sequences, self.sequences.fork(branch.node), branch) for _ in range(count)]

    def prune(self, branch: Branch, *, upwards: bool = False) -> None:
        """Removes the branch and all branches below it. With `upwards` it also removes ancestors that have no other child, up
        to the prompt. The prompt stays until you prune it."""
        branch.check(self.sequences)
        while True:
            parent = branch.parent
            self.sequences.prune(branch.node)
            branch.end()
            if parent is None:
                self._roots.remove(branch)
                return
            parent.children.remove(branch)
            if not upwards or parent.children or parent.parent is None:
                return
            branch = parent

    def step(self, branches: Sequence[Branch], tokens: Tokens) -> torch.Tensor:
        """Adds a token to each of the branches, which must be leaves. Returns the logits of the next tokens,
        [branches, vocabulary]. Each branch keeps its row."""
        tokens = _checked(tokens, self._vocabulary)
        if len(branches) != len(tokens):
            raise UsageError(f"there are {len(tokens)} tokens for {len(branches)} branches")
        if not tokens or len(set(map(id, branches))) < len(branches):
            raise UsageError("a step takes at least one branch, and each once")
        for branch in branches:
            branch.check(self.sequences)
        self._correct_if_due()
        with growing(self.cache, branches, 1):
            result = self._decode(tokens, [(branch.node, len(branch.own)) for branch in branches])
        for branch, token in zip(branches, tokens):
            branch.own.append(token)
        _keep(branches, result)
        return result.logits

    def verify(self, sequence: Branch, tokens: Tokens, parents: Sequence[int]) -> list[Branch]:
        """Reads guessed tokens below a sequence in one step: `parents[i]` is an earlier token of the list, or -1 for the
        sequence. Returns a branch for each guess; its logits predict the token after it. `accept` or `prune` ends the branches."""
        return self.verify_all([(sequence, tokens, parents)])[0]

    def verify_all(self, guesses: Sequence[tuple[Branch, Tokens, Sequence[int]]]) -> list[list[Branch]]:
        """Reads guesses below several sequences in one step."""
        self._correct_if_due()
        found: list[list[Branch]] = []
        try:
            for sequence, tokens, parents in guesses:
                found.append(self._guess(sequence, _checked(tokens, self._vocabulary), parents))
            everyone = [branch for branches in found for branch in branches]
            if not everyone:
                return found
            result = self._decode([branch.own[0] for branch in everyone], [(branch.node, 0) for branch in everyone])
        except BaseException:
            for branch in [one for branches in found for one in branches]:
                if branch.is_alive:  # goes with its parent, where that is a guess
                    self.prune(branch)
            raise
        _keep(everyone, result)
        return found

    def accept(self, sequence: Branch, last: Branch) -> None:
        """Makes the tokens from below `sequence` to `last` the end of the sequence, which can then continue. Everything else
        below the sequence is removed."""
        last.check(self.sequences)
        path = last.path()
        if sequence not in path:
            raise UsageError("the last accepted branch is not below the sequence")
        accepted = path[path.index(sequence) + 1 :]
        self.cache.copy(self.sequences.accept(sequence.node, last.node))
        for branch in accepted:
            sequence.own.extend(branch.own)
        sequence.logits, sequence.hidden = last.logits, last.hidden
        for child in sequence.children:
            child.end()
        sequence.children = []

    def _guess(self, sequence: Branch, tokens: list[int], parents: Sequence[int]) -> list[Branch]:
        sequence.check(self.sequences)
        if len(tokens) != len(parents):
            raise UsageError(f"there are {len(parents)} parents for {len(tokens)} tokens")
        branches: list[Branch] = []
        for node, token, parent in zip(self.sequences.add_token_tree(sequence.node, parents), tokens, parents):
            branches.append(Branch(self.sequences, node, sequence if parent < 0 else branches[parent]))
            branches[-1].own.append(token)
        return branches

    @contextmanager
    def _new_root(self, count: int) -> Iterator[Branch]:
        """Adds a prompt for the duration of a pass. If the pass fails, the prompt is removed."""
        root = Branch(self.sequences, self.sequences.add_root(count))
        self._roots.append(root)
        try:
            yield root
        except BaseException:
            self.prune(root)
            raise

    def _read_behind(self, branch: Branch, tokens: list[int]) -> None:
        """Reads tokens that already have room in the tree."""
        first = len(branch.own)
        places = [(branch.node, first + index) for index in range(len(tokens))]
        result = self._read(tokens, places)
        if self._pollution:
            self._pollution.after_prefill(branch, places)
        branch.own.extend(tokens)
        _keep([branch], result)

    def _correct_if_due(self) -> None:
        if self._pollution and self._pollution.is_due:
            self.correct()

    def _read(self, tokens: list[int], places: list[Place]) -> Result:
        """Reads known tokens with full attention, in chunks. Returns the result of the last token."""
        for begin in range(0, len(tokens), self._prefill_chunk):
            chunk = slice(begin, begin + self._prefill_chunk)
            self.sequences.set_queries([(node, index + 1) for node, index in places[chunk]])
            result = self._run(self._stretches, self._rows(tokens[chunk], places[chunk]), last=1)
        return result

    def _decode(self, tokens: list[int], places: list[Place]) -> Result:
        """Runs a step: each token is the last one of its node."""
        self.sequences.set_queries([node for node, _ in places])
        rows = self._rows(tokens, places)
        result = self._run(self._steps, rows)
        if self._pollution:
            self._pollution.after_step(places, rows.positions)
        return result

    def _rows(self, tokens: list[int], places: list[Place]) -> Rows:
        firsts = self.sequences._places({node for node, _ in places})
        positions = torch.tensor([firsts[node][1] + index for node, index in places])
        locations = torch.tensor([firsts[node][0] + index for node, index in places])
        return Rows(torch.tensor(tokens), positions, self.cache.slots_of(locations))

    @torch.no_grad()
    def _run(self, forward: Any, rows: Rows, last: int = 0) -> Result:
        if forward is not self._stretches:
            self._last_steps = forward
        return forward.run(rows, last)


def _keep(branches: Sequence[Branch], result: Result) -> None:
    # Taken apart at once: a token tree has hundreds of rows, and each indexing of its own costs microseconds.
    for branch, logits in zip(branches, result.logits.unbind()):
        branch.logits, branch.hidden = logits, None
    if result.hidden is not None:
        for branch, hidden in zip(branches, result.hidden.unbind()):
            branch.hidden = hidden


def _checked(tokens: Tokens, vocabulary: int) -> list[int]:
    """Checks that the model has an embedding for all tokens: on a GPU a look-up out of range makes the GPU unusable for the
    process."""
    listed = tokens.flatten().tolist() if isinstance(tokens, torch.Tensor) else tokens
    try:
        ids = [operator.index(token) for token in listed]
    except TypeError:
        hint = ""
        if isinstance(tokens, Mapping):
            hint = 'pass its ["input_ids"]'
        elif isinstance(tokens, str):
            hint = 'pass tokenizer(text)["input_ids"]'
        elif any(isinstance(one, (list, tuple, torch.Tensor)) for one in listed):
            hint = "of several prompts one at a time"
        raise UsageError(f"tokens is {kind_of(tokens)}, it must be a row of whole numbers", hint) from None
    for token in ids:
        if not 0 <= token < vocabulary:
            raise UsageError(f"there is no token {token} in a vocabulary of {vocabulary}")
    return ids
