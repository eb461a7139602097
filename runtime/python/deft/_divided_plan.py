"""A step over a latent cache in two runs: nodes with many readers are read in expanded form, all others as latents."""

from __future__ import annotations

import sys
from ctypes import c_int32
from typing import TYPE_CHECKING, Any, Iterable, Mapping, NamedTuple

from . import _abi, _gpu
from ._arguments import expect, expect_whole, kind_of, structs_of
from ._attention import Attention, Plan
from ._errors import UsageError, wrong
from ._library import OfThisProcess, lib, take_row
from ._operations import merge_states
from ._options import TreePlanOptions, checked, takes
from ._plans import GpuPlan, HostPlan
from ._tree import Tree, TreeView

if TYPE_CHECKING:
    from typing_extensions import Unpack

_CHOICES = {"price": _abi.DEFT_EXPANDED_BY_PRICE, "all": _abi.DEFT_EXPANDED_ALL}


class ExpandedNode(NamedTuple):
    """A node that also exists in expanded form: all its `tokens` have K and V in a separate cache, from `location` on."""

    node: int
    tokens: int
    location: int


class _FormPlan(Plan):
    """The plan of one form. It covers only some of the tree's nodes, so it refuses to plan for another device."""

    def __init__(self, attention: Attention, tree: TreeView, params: Any, options: Any, device: Any, typical: Tree | None) -> None:
        self._typical = typical
        self._is_made = False
        super().__init__(attention, tree, params, options, device)
        self._is_made = True
        self._typical = None

    def _typical_tree(self) -> Any:
        return self._planned_tree() if self._typical is None else self._typical

    def _host_plan(self) -> HostPlan:
        if self._is_made and self._host is None:
            raise UsageError("the plan was divided on a GPU, q is on the host")
        return super()._host_plan()

    def _gpu_plan(self, device: int, budget: int | None = None) -> GpuPlan:
        if self._is_made and device not in self._gpus:
            raise UsageError(f"the plan was divided on another device, q is on GPU {device}", "give device= to DividedPlan")
        return super()._gpu_plan(device, budget)


class DividedPlan(OfThisProcess):
    """Runs a step over a latent cache in two runs. A host may keep the K and V of each head (the *expanded* form) of nodes with
    many readers, such as a system prompt. Above some 50 readers these are cheaper to read than latents. The `expanded` run
    reads the `chosen` nodes from a cache of their own. The `absorbed` run reads all other nodes as latents and multiplies its
    result by W_UV. Then both results are merged.

    `absorbed` is an attention over a latent cache. `expanded` has as many query heads, as many KV heads, and the same output
    type, scale and mask. Both give lse. `nodes` lists the nodes that exist in both forms, each as an ExpandedNode.
    choice="price" chooses the nodes that are cheaper expanded, if they pay for the second run; "all" chooses all. Both plans
    get the same options.

    >>> import deft, numpy
    >>> latent = deft.compile("attention a { query_heads = 4; kv_cache = latent(dim = 32, rope = 16); dtype = f16; scale = 0.2; "
    ...                       "output = f16 with lse; }")
    >>> heads = deft.compile("attention b { query_heads = 4; kv_heads = 4; key_dim = 32; value_dim = 16; dtype = f16; scale = 0.2; "
    ...                      "kv_cache = contiguous; output = f16 with lse; }")
    >>> tree = deft.Tree()
    >>> prompt = tree.add_root(64, location=0)
    >>> for branch in range(2):
    ...     _ = tree.add_query(tree.add_child(prompt, 5, location=64 + 16 * branch))
    >>> plan = deft.DividedPlan(latent, heads, tree, [deft.ExpandedNode(prompt, tokens=64, location=0)], choice="all")
    >>> plan.chosen == [prompt]
    True
    >>> q, q_expanded, cache, k, v, w_uv = (numpy.ones(shape, "float16") for shape in (
    ...     (2, 4, 48), (2, 4, 32), (6, 16, 48), (64, 4, 32), (64, 4, 16), (4, 32, 16)))
    >>> plan.run(q, q_expanded, cache, k, v, w_uv, page_table=[0, 1, 2, 3, 4, 5]).shape
    (2, 4, 16)
    """

    _sent_as = "make another of the same tree and nodes"

    @takes(TreePlanOptions)
    def __init__(
        self,
        absorbed: Attention,
        expanded: Attention,
        tree: TreeView,
        nodes: Iterable[ExpandedNode] = (),
        *,
        choice: str = "price",
        params: Mapping[str, Any] | None = None,
        device: Any = "cpu",
        **options: Unpack[TreePlanOptions],
    ) -> None:
        expect("absorbed", absorbed, _abi.deft_attention)
        expect("expanded", expanded, _abi.deft_attention)
        expect("tree", tree, _abi.deft_tree)
        if choice not in _CHOICES:
            raise wrong("choice", f"is {choice!r}, it must be one of {', '.join(_CHOICES)}")
        self._choice = _CHOICES[choice]
        self._nodes = _nodes_of(nodes)
        self._tree = tree
        known = checked("DividedPlan", TreePlanOptions, options)
        is_gpu = _gpu.device_index(device) is not None
        # Kernels are chosen for what each plan will read.
        typical = _trees_of_forms(tree, self._nodes) if is_gpu and self._nodes else (None, None)
        self.absorbed: Plan = _FormPlan(absorbed, tree, params, known, device, typical[0])
        self.expanded: Plan = _FormPlan(expanded, tree, params, known, device, typical[1])
        self.chosen: list[int] = []
        self.advance()

    def advance(self, nodes: Iterable[ExpandedNode] | None = None) -> list[int]:
        """Updates both plans to the tree's current state. `nodes` replaces the nodes that exist in both forms. If only leaves
        have grown, the choice stays the same. Returns the chosen nodes."""
        if nodes is not None:
            self._nodes = _nodes_of(nodes)
        rows = structs_of("nodes", self._nodes, _abi.deft_expanded_node)
        plans = self.absorbed._any(), self.expanded._any()
        divide = lib.deft_gpu_plan_divide if isinstance(plans[0], GpuPlan) else lib.deft_plan_divide
        self.chosen = take_row(
            c_int32, None, divide, plans[0].handle, plans[1].handle, self._tree, rows, len(self._nodes), self._choice
        )
        for plan in plans:
            if isinstance(plan, GpuPlan):
                plan.needs_upload = True
        return self.chosen

    def upload(self, stream: int | None = None) -> None:
        """Uploads both plans, as Plan.upload does."""
        self.absorbed.upload(stream)
        self.expanded.upload(stream)

    def run(
        self,
        q: Any,
        q_expanded: Any,
        cache: Any,
        k: Any,
        v: Any,
        w_uv: Any,
        *,
        page_table: Any = None,
        expanded_page_table: Any = None,
        out: Any = None,
        lse: Any = None,
        return_lse: bool = False,
    ) -> Any:
        """Computes the attention of all queries in the expanded form. `q` and `cache` belong to the absorbed run (see
        Attention.run); `q_expanded`, `k` and `v` to the expanded run. Each cache has its own page table. The absorbed result is
        multiplied by `w_uv`: [query_heads, latent dim, value_dim], in the output's type. Returns `out`, or `(out, lse)`. If no
        nodes are chosen, the expanded run is skipped, except while a graph is captured, because its replays may need it. Arrays
        are NumPy's (with ml_dtypes for bfloat16) or torch's; on a GPU all work is on torch's current stream."""
        given: Any = {"return_lse": True}
        latents, own_lse = self.absorbed._run(q, cache, None, page_table, given)
        own = _projected(latents, w_uv, self.absorbed.attention, self.expanded.attention)
        states = [(own, own_lse)]
        if self.chosen or _gpu._is_capturing():
            states.append(self.expanded._run(q_expanded, k, v, expanded_page_table, given))
        if out is None and lse is None:
            out, lse = own, own_lse
        if len(states) > 1 or out is not own:
            outs, lses = zip(*states)
            out, lse = merge_states(outs, lses, out=out, lse=lse)
        return (out, lse) if return_lse else out

    def __repr__(self) -> str:
        names = f"{self.absorbed.attention.name} and {self.expanded.attention.name}"
        return f"<deft.DividedPlan of {names}: {len(self.chosen)} of {len(self._nodes)} expanded nodes chosen>"


def _nodes_of(nodes: Iterable[ExpandedNode]) -> list[tuple[int, int, int]]:
    found = []
    for index, one in enumerate(nodes):
        if not isinstance(one, tuple) or len(one) != 3:
            raise wrong(f"nodes[{index}]", f"is {one!r}, it must be deft.ExpandedNode(node, tokens, location)")
        node, tokens, location = (expect_whole(f"nodes[{index}].{name}", value) for name, value in zip(ExpandedNode._fields, one))
        found.append((node, tokens, location))
    return found


def _trees_of_forms(tree: TreeView, nodes: list[tuple[int, int, int]]) -> tuple[Tree, Tree]:
    """Returns trees like those that the two plans read when all of the nodes are chosen; nodes of the other form are empty. An
    expanded tree without tokens would say nothing about later steps."""
    expanded = {node for node, _, _ in nodes}
    made = []
    for is_expanded in (False, True):
        copy, numbers = Tree(), {}
        for node in tree.nodes:
            facts = tree.node(node)
            tokens = facts.tokens if (node in expanded) == is_expanded else 0
            location = max(facts.location, 0)
            if facts.parent is None:
                numbers[node] = copy.add_root(tokens, location)
            else:
                numbers[node] = copy.add_child(numbers[facts.parent], tokens, location)
        copy.set_queries([numbers[query.node] for query in tree.queries])
        made.append(copy)
    return made[0], made[1]


def _projected(latents: Any, w_uv: Any, absorbed: Attention, expanded: Attention) -> Any:
    """Multiplies latents [queries, heads, latent dim] by w_uv, for each head."""
    shape = (absorbed.query_heads, absorbed.value_dim, expanded.value_dim)
    if tuple(getattr(w_uv, "shape", ())) != shape:
        has = f"has shape {list(w_uv.shape)}" if hasattr(w_uv, "shape") else f"is {kind_of(w_uv)}"
        raise wrong("w_uv", f"{has}, it must be [query_heads, latent dim, value_dim] = {list(shape)}")
    if w_uv.dtype != latents.dtype:
        raise wrong("w_uv", f"is {w_uv.dtype}, the output is {latents.dtype}")
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(latents, torch.Tensor):
        own = latents.new_empty(len(latents), shape[0], shape[2])
        torch.bmm(latents.transpose(0, 1), w_uv, out=own.transpose(0, 1))
        return own
    if numpy is not None and isinstance(latents, numpy.ndarray) and latents.dtype.kind in "fV":
        product = numpy.matmul(latents.astype("float32").transpose(1, 0, 2), w_uv.astype("float32"))
        return numpy.ascontiguousarray(product.transpose(1, 0, 2)).astype(latents.dtype)
    raise UsageError(
        f"a {type(latents).__name__} of {latents.dtype} cannot be multiplied by w_uv here",
        "give arrays of torch or of NumPy, which has bfloat16 by ml_dtypes; or run both plans, and deft.merge_states",
    )
