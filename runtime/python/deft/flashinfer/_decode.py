"""FlashInfer's wrapper for decoding over a paged cache."""

from __future__ import annotations

import functools
from typing import Any

import torch

from .._adapters.outside import outside, refuse_given
from .._adapters.steps import PagedWork, Room, Steps
from .._adapters.variant import Variant, make_variant, scale_of, window_of
from ._arguments import (
    as_int32,
    cache_word,
    check_backend,
    check_layout,
    check_position_encoding,
    check_stride_variant,
    check_workspace,
    dtype_word,
    host_ints,
    lengths_of,
    one_dtype_word,
    split_cache,
)
from ._run import older_call_of
from ._run import run as run_step


class BatchDecodeWithPagedKVCacheWrapper:
    """Works like flashinfer.BatchDecodeWithPagedKVCacheWrapper, but reads pages that requests share once.

    Only the workspace's device matters. `enable_pdl` and `non_blocking` are ignored. Without `use_tensor_cores`, as in
    FlashInfer, these are errors: several queries of a request, and V with strides of its own. `fixed_split_size` and
    `disable_split_kv` give results that do not depend on the other requests, bit for bit. Of shared pages, whole chunks of 512
    tokens are then read once; each request reads the rest itself."""

    def __init__(
        self,
        float_workspace_buffer: torch.Tensor,
        kv_layout: str = "NHD",
        use_cuda_graph: bool = False,
        use_tensor_cores: bool = False,
        paged_kv_indptr_buffer: torch.Tensor | None = None,
        paged_kv_indices_buffer: torch.Tensor | None = None,
        paged_kv_last_page_len_buffer: torch.Tensor | None = None,
        backend: str = "auto",
        jit_args: list[Any] | None = None,
        jit_kwargs: dict[str, Any] | None = None,
    ) -> None:
        check_backend(backend)
        refuse_given("specs take the place of FlashInfer's kernels", jit_args=jit_args, jit_kwargs=jit_kwargs)
        check_workspace("float_workspace_buffer", float_workspace_buffer)
        self._kv_layout = check_layout(kv_layout)
        self._use_cuda_graph = use_cuda_graph
        self._use_tensor_cores = use_tensor_cores
        self._backend = backend
        self.device = float_workspace_buffer.device
        self._takes_sinks = False  # with each run
        self._variant: Variant | None = None
        self._sm_scale = 0.0  # of the plan; the attention may be of another one, which runs make up for
        self._q_len_per_req = 1
        self._pages: torch.Tensor | None = None
        self._batch_size = 0
        if use_cuda_graph:
            for name, buffer in (
                ("paged_kv_indptr_buffer", paged_kv_indptr_buffer),
                ("paged_kv_indices_buffer", paged_kv_indices_buffer),
                ("paged_kv_last_page_len_buffer", paged_kv_last_page_len_buffer),
            ):
                if not isinstance(buffer, torch.Tensor):
                    raise ValueError(f"{name} must be a tensor where use_cuda_graph is set")
            assert paged_kv_last_page_len_buffer is not None and paged_kv_indptr_buffer is not None
            self._batch_size = len(paged_kv_last_page_len_buffer)
            if len(paged_kv_indptr_buffer) != self._batch_size + 1:
                raise ValueError(
                    f"paged_kv_indptr_buffer has {len(paged_kv_indptr_buffer)} entries, it must have {self._batch_size + 1}"
                )
            self._pages = paged_kv_indices_buffer
        self._steps = Steps(self.device)

    @property
    def use_tensor_cores(self) -> bool:
        return self._use_tensor_cores

    @property
    def is_cuda_graph_enabled(self) -> bool:
        return self._use_cuda_graph

    @property
    def resolved_backend(self) -> str:
        """The backend that was asked for, or fa2 for `auto`. It only decides which calls are refused."""
        return "fa2" if self._backend == "auto" else self._backend

    def workspace_size(self, *args: Any, **kwargs: Any) -> tuple[int, int]:
        """Returns (0, 0), the bytes of both workspaces: deft writes nothing there. The arguments are plan's; plan checks them."""
        return 0, 0

    def reset_workspace_buffer(self, float_workspace_buffer: torch.Tensor, int_workspace_buffer: torch.Tensor) -> None:
        """Checks its arguments; deft writes nothing to the workspace."""
        check_workspace("float_workspace_buffer", float_workspace_buffer)
        check_workspace("int_workspace_buffer", int_workspace_buffer)

    def plan(
        self,
        indptr: torch.Tensor,
        indices: torch.Tensor,
        last_page_len: torch.Tensor,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim: int,
        page_size: int,
        pos_encoding_mode: str = "NONE",
        window_left: int = -1,
        logits_soft_cap: float | None = None,
        q_data_type: Any = "float16",
        kv_data_type: Any = None,
        o_data_type: Any = None,
        data_type: Any = None,
        sm_scale: float | None = None,
        rope_scale: float | None = None,
        rope_theta: float | None = None,
        non_blocking: bool = True,
        block_tables: torch.Tensor | None = None,
        seq_lens: torch.Tensor | None = None,
        fixed_split_size: int | None = None,
        disable_split_kv: bool = False,
        q_len_per_req: int = 1,
        *,
        window_right: int = 0,
        is_causal: bool | None = None,
        use_token_head_sf: bool = False,
    ) -> None:
        """Plans the requests of the step. Like FlashInfer's plan, it waits for arguments on a GPU and cannot be captured. If it
        raises an error, runs and replays still use the step before."""
        check_position_encoding(pos_encoding_mode)
        refuse_given("the pages are those of indptr and indices", block_tables=block_tables)
        refuse_given("scales of tokens are not read", use_token_head_sf=use_token_head_sf)
        if window_right != 0:
            raise outside("window_right", window_right, "a query sees no later token")
        if is_causal is not None and is_causal != (q_len_per_req > 1):
            raise outside("is_causal", is_causal, f"q_len_per_req is {q_len_per_req}")
        batch_size = len(last_page_len)
        self._check_shape(batch_size, len(indices), q_len_per_req)
        if data_type is not None:
            q_data_type = data_type if q_data_type is None else q_data_type
            kv_data_type = data_type if kv_data_type is None else kv_data_type
        q_data_type = q_data_type if q_data_type is not None else torch.float16
        dtype = one_dtype_word(q_data_type, kv_data_type)
        variant = make_variant(
            query_heads=num_qo_heads,
            kv_heads=num_kv_heads,
            head_dim=head_dim,
            page_size=page_size,
            kv_layout=self._kv_layout,
            dtype=dtype,
            cache_dtype=cache_word(kv_data_type),
            output_dtype=dtype if o_data_type is None else dtype_word("o_data_type", o_data_type),
            sm_scale=sm_scale,
            logits_soft_cap=logits_soft_cap,
            window_left=window_left,
            has_scales=bool(cache_word(kv_data_type)),
        )
        variant = variant.sinking if self._takes_sinks else variant
        host_indptr = host_ints("indptr", indptr)
        lengths = lengths_of(host_indptr, host_ints("last_page_len", last_page_len), page_size)
        queries = None
        if q_len_per_req > 1:
            if batch_size and int(lengths.min()) < q_len_per_req:
                asked = f"q_len_per_req is {q_len_per_req}, a request has {int(lengths.min())} tokens"
                raise ValueError(f"{asked}: its first queries would have an empty KV range")
            queries = torch.arange(batch_size + 1, dtype=torch.int32) * q_len_per_req
        given = as_int32("indices", indices)
        on_host = given.cpu().contiguous()  # what planning reads
        pages = given.to(self.device).contiguous() if self._pages is None else self._pages[: len(given)]
        if self._pages is not None and self._variant is None:
            room = Room(batch_size, batch_size * q_len_per_req, len(self._pages) * page_size)
            self._steps = Steps(self.device, room)
        planned = variant.at_scale_of(self._variant)
        invariant = bool(disable_split_kv) or fixed_split_size not in (None, -1)
        work = PagedWork(pages, host_indptr, lengths, queries, on_host)
        self._steps.plan(work, planned.running_at(variant.scale), invariant=invariant)
        # Now that nothing can be refused: until here a replay is one of the step before.
        if self._pages is not None and pages.data_ptr() != given.data_ptr():
            pages.copy_(given)
        self._variant, self._sm_scale, self._batch_size = planned, variant.scale, batch_size
        self._q_len_per_req = q_len_per_req

    begin_forward = plan

    def prewarm_paged_kv_stride_variant(self, variant: str = "independent") -> None:
        """Checks its arguments; there is nothing to load."""
        check_stride_variant(variant, self._variant is not None)
        if not self._use_tensor_cores:
            raise RuntimeError("K and V of different strides are for tensor-core decode: use_tensor_cores=True")

    def _check_shape(self, batch_size: int, index_count: int, q_len_per_req: int) -> None:
        """Checks the shape against the wrapper's buffers, as FlashInfer does."""
        if q_len_per_req < 1:
            raise ValueError(f"q_len_per_req is {q_len_per_req}, it must be at least 1")
        if q_len_per_req > 1 and not self._use_tensor_cores:
            raise ValueError(f"q_len_per_req is {q_len_per_req}, more than 1 takes a wrapper with use_tensor_cores=True")
        if q_len_per_req > 1 and self._backend == "fa3":
            raise outside("backend", self._backend, f"q_len_per_req is {q_len_per_req}, more than 1 is for fa2")
        if self._pages is None:
            return
        if batch_size != self._batch_size:
            raise ValueError(f"there are {batch_size} requests, the wrapper for CUDA graphs was made for {self._batch_size}")
        if index_count > len(self._pages):
            raise ValueError(f"indices has {index_count} entries, paged_kv_indices_buffer has {len(self._pages)}")
        if self._variant is not None and q_len_per_req != self._q_len_per_req:
            had = f"it is frozen at {self._q_len_per_req} by the first plan"
            raise ValueError(f"q_len_per_req is {q_len_per_req}, {had} of a wrapper for CUDA graphs")

    def run(
        self,
        q: torch.Tensor,
        paged_kv_cache: Any,
        *args: Any,
        q_scale: float | None = None,
        k_scale: float | None = None,
        v_scale: float | None = None,
        out: torch.Tensor | None = None,
        lse: torch.Tensor | None = None,
        return_lse: bool = False,
        enable_pdl: bool | None = None,
        window_left: int | None = None,
        sinks: torch.Tensor | None = None,
        q_len_per_req: int | None = None,
        skip_softmax_threshold_scale_factor: float | None = None,
        kv_cache_sf: Any = None,
    ) -> Any:
        """Returns out, or (out, lse) if `return_lse` is set; lse is to the base 2. `sinks`: one logit for each query head; it
        enters only the denominator and the lse."""
        variant = self._planned()
        if args:
            raise outside("args", args, "they are those of kernels that jit_args make")
        refuse_given("no token is left out", skip_softmax_threshold_scale_factor=skip_softmax_threshold_scale_factor)
        refuse_given("scales of blocks of a cache are not read", kv_cache_sf=kv_cache_sf)
        if window_left is not None and window_of(window_left) != variant.window_left:
            raise ValueError(f"window_left is {window_left}, it was planned as {variant.window_left}")
        if q_len_per_req not in (None, self._q_len_per_req):
            raise ValueError(f"q_len_per_req is {q_len_per_req}, it was planned as {self._q_len_per_req}")
        scale = scale_of(self._sm_scale, variant.head_dim, q_scale, k_scale)
        return self._run(variant, scale, q, paged_kv_cache, v_scale, out, lse, return_lse, sinks)

    run_return_lse = functools.partialmethod(run, return_lse=True)

    def _planned(self) -> Variant:
        if self._variant is None:
            raise RuntimeError("nothing is planned yet: call plan before run")
        return self._variant

    def _run(
        self,
        variant: Variant,
        scale: float,
        q: torch.Tensor,
        cache: Any,
        v_scale: float | None,
        out: torch.Tensor | None = None,
        lse: torch.Tensor | None = None,
        return_lse: bool = False,
        sinks: torch.Tensor | None = None,
    ) -> Any:
        if len(q) != self._batch_size * self._q_len_per_req:
            planned = f"{self._batch_size} requests with q_len_per_req={self._q_len_per_req} are planned"
            raise ValueError(f"q has {len(q)} rows, {planned}")
        k, v = split_cache(cache, self._kv_layout)
        if not self._use_tensor_cores and k.stride() != v.stride():
            lie = f"K and V must have identical strides without use_tensor_cores=True, they have {k.stride()} and {v.stride()}"
            raise ValueError(lie)
        return run_step(self._steps, variant, q, (k, v), out, lse, return_lse, variant.factor_to(scale), v_scale, sinks)

    def forward(
        self,
        q: torch.Tensor,
        paged_kv_cache: Any,
        pos_encoding_mode: str = "NONE",
        q_scale: float | None = None,
        k_scale: float | None = None,
        v_scale: float | None = None,
        window_left: int = -1,
        logits_soft_cap: float | None = None,
        sm_scale: float | None = None,
        rope_scale: float | None = None,
        rope_theta: float | None = None,
        return_lse: bool = False,
    ) -> Any:
        """Runs by the older call. It repeats plan's window, cap and scale; the values given here count."""
        variant = older_call_of(self._planned(), pos_encoding_mode, window_left, logits_soft_cap)
        scale = scale_of(sm_scale, variant.head_dim, q_scale, k_scale)
        return self._run(variant, scale, q, paged_kv_cache, v_scale, return_lse=return_lse)

    forward_return_lse = functools.partialmethod(forward, return_lse=True)

    def end_forward(self) -> None:
        """Does nothing, like FlashInfer's."""


class CUDAGraphBatchDecodeWithPagedKVCacheWrapper(BatchDecodeWithPagedKVCacheWrapper):
    """Works like flashinfer.CUDAGraphBatchDecodeWithPagedKVCacheWrapper."""

    def __init__(
        self,
        workspace_buffer: torch.Tensor,
        indptr_buffer: torch.Tensor,
        indices_buffer: torch.Tensor,
        last_page_len_buffer: torch.Tensor,
        kv_layout: str = "NHD",
        use_tensor_cores: bool = False,
    ) -> None:
        super().__init__(
            workspace_buffer,
            kv_layout,
            use_cuda_graph=True,
            use_tensor_cores=use_tensor_cores,
            paged_kv_indptr_buffer=indptr_buffer,
            paged_kv_indices_buffer=indices_buffer,
            paged_kv_last_page_len_buffer=last_page_len_buffer,
        )


def fast_decode_plan(
    self: BatchDecodeWithPagedKVCacheWrapper,
    indptr: torch.Tensor,
    indices: torch.Tensor,
    last_page_len: torch.Tensor,
    num_qo_heads: int,
    num_kv_heads: int,
    head_dim: int,
    page_size: int,
    pos_encoding_mode: str = "NONE",
    window_left: int = -1,
    logits_soft_cap: float | None = None,
    q_data_type: Any = None,
    kv_data_type: Any = None,
    data_type: Any = None,
    sm_scale: float | None = None,
    rope_scale: float | None = None,
    rope_theta: float | None = None,
    non_blocking: bool = True,
    fixed_split_size: int | None = None,
    disable_split_kv: bool = False,
    q_len_per_req: int = 1,
    global_override_indptr_cpu: torch.Tensor | None = None,
    *,
    global_override_indptr_host: Any = None,
    **more: Any,
) -> None:
    """Plans the wrapper `self` like flashinfer.fast_decode_plan: the host already has the indptr. Other arguments of plan are
    taken by name; an older engine's `global_override_indptr_host` is not read."""
    if self._variant is None and q_len_per_req > 1:
        raise ValueError(f"q_len_per_req is {q_len_per_req}, more than 1 needs a prior plan of the wrapper")
    type(self).plan(
        self, indptr if global_override_indptr_cpu is None else global_override_indptr_cpu, indices, last_page_len, num_qo_heads,
        num_kv_heads, head_dim, page_size, pos_encoding_mode, window_left, logits_soft_cap, q_data_type, kv_data_type,
        data_type=data_type, sm_scale=sm_scale, rope_scale=rope_scale, rope_theta=rope_theta, non_blocking=non_blocking,
        fixed_split_size=fixed_split_size, disable_split_kv=disable_split_kv, q_len_per_req=q_len_per_req, **more,
    )  # fmt: skip
