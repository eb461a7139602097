"""What FlashInfer's tests compare its wrappers with, in torch and to be read; and the rest of the module by name only."""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types

import torch

LOG2_E = 1.4426950408889634


class ReferenceMissing(Exception):
    """A test needs a part of FlashInfer that has no reference here."""


def attention(q, k, v, seen, sm_scale=None, logits_soft_cap=None, window_left=-1, own=None, mask=None):
    """Query i sees the first seen[i] of the tokens, and of these what mask[i] shows. Its window begins before token own[i], by
    default the last one that it sees. q [queries, heads, dim], k and v [tokens, kv_heads, dim]."""
    own = seen - 1 if own is None else own
    group = q.shape[1] // k.shape[1]
    scale = q.shape[-1] ** -0.5 if sm_scale is None else sm_scale
    position = torch.arange(k.shape[0], device=q.device)
    outs, lses = [], []
    for first in range(0, len(q), 256):  # scores of all queries at once may be too many
        rows, last, ends = q[first : first + 256].float(), *(one[first : first + 256, None, None] for one in (own, seen))
        split = rows.unflatten(1, (k.shape[1], group))
        scores = torch.einsum("qhgd,khd->qhgk", split, k.float()).flatten(1, 2) * scale
        if logits_soft_cap:
            scores = logits_soft_cap * torch.tanh(scores / logits_soft_cap)
        hidden = position >= ends
        if window_left >= 0:
            hidden = hidden | (position < last - window_left)
        if mask is not None:
            hidden = hidden | ~mask[first : first + 256, None, :]
        scores = scores.masked_fill(hidden, -torch.inf)
        lse = torch.logsumexp(scores, -1)
        weights = torch.exp(scores - lse.masked_fill(lse.isinf(), 0)[..., None]).unflatten(1, (k.shape[1], group))
        outs.append(torch.einsum("qhgk,khd->qhgd", weights, v.float()).flatten(1, 2))
        lses.append(lse * LOG2_E)
    return torch.cat(outs), torch.cat(lses)


def _only_plain(pos_encoding_mode="NONE", *masks):
    if pos_encoding_mode != "NONE" or any(mask is not None for mask in masks):
        raise ReferenceMissing("positions within the kernel, or masks")


def single_decode_with_kv_cache(
    q, k, v, kv_layout="NHD", pos_encoding_mode="NONE", use_tensor_cores=False, q_scale=None, k_scale=None, v_scale=None,
    window_left=-1, logits_soft_cap=None, sm_scale=None, rope_scale=None, rope_theta=None, return_lse=False,
):  # fmt: skip
    _only_plain(pos_encoding_mode)
    if kv_layout == "HND":
        k, v = k.transpose(0, 1), v.transpose(0, 1)
    sm_scale = q.shape[-1] ** -0.5 if sm_scale is None else sm_scale
    for scale in (q_scale, k_scale):
        sm_scale = sm_scale if scale is None else sm_scale * scale
    out, lse = attention(q[None], k, v, torch.tensor([len(k)], device=q.device), sm_scale, logits_soft_cap, window_left)
    out = (out[0] if v_scale is None else out[0] * v_scale).to(q.dtype)
    return (out, lse[0]) if return_lse else out


def single_prefill_with_kv_cache(
    q, k, v, scale_q=None, scale_k=None, scale_v=None, o_dtype=None, custom_mask=None, packed_custom_mask=None, causal=False,
    kv_layout="NHD", pos_encoding_mode="NONE", use_fp16_qk_reduction=False, sm_scale=None, window_left=-1,
    logits_soft_cap=None, rope_scale=None, rope_theta=None, backend="auto", return_lse=False,
):  # fmt: skip
    _only_plain(pos_encoding_mode, packed_custom_mask)
    if kv_layout == "HND":
        k, v = k.transpose(0, 1), v.transpose(0, 1)
    own = torch.arange(len(k) - len(q), len(k), device=q.device)
    mask = None if custom_mask is None else custom_mask.reshape(len(q), len(k)).bool()
    seen = torch.full_like(own, len(k)) if mask is not None or not causal else (own + 1).clamp(min=0)
    out, lse = attention(q, k, v, seen, sm_scale, logits_soft_cap, window_left, own, mask)
    return (out.to(q.dtype), lse) if return_lse else out.to(q.dtype)


def _tokens(cache, which, indices, tokens, kv_layout):
    part = cache[which] if isinstance(cache, tuple) else cache[:, which]
    pages = part[indices.long()]
    if kv_layout == "HND":
        pages = pages.transpose(1, 2)
    return pages.flatten(0, 1)[:tokens]


class BatchPrefillWithPagedKVCacheWrapper:
    def __init__(self, workspace, kv_layout="NHD", *arguments, **more):
        self._kv_layout = kv_layout

    def plan(
        self, qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len, num_qo_heads, num_kv_heads, head_dim_qk,
        page_size, head_dim_vo=None, custom_mask=None, packed_custom_mask=None, causal=False, pos_encoding_mode="NONE",
        use_fp16_qk_reduction=False, sm_scale=None, window_left=-1, logits_soft_cap=None, **more,
    ):  # fmt: skip
        _only_plain(pos_encoding_mode, custom_mask, packed_custom_mask)
        self._queries, self._pages = qo_indptr.tolist(), paged_kv_indptr.tolist()
        self._indices, self._last, self._page_size = paged_kv_indices, paged_kv_last_page_len.tolist(), page_size
        self._causal, self._more = causal, dict(sm_scale=sm_scale, window_left=window_left, logits_soft_cap=logits_soft_cap)

    begin_forward = plan

    def run(self, q, paged_kv_cache, *, k_scale=None, v_scale=None, out=None, lse=None, return_lse=False, **more):
        outs, lses = [], []
        for request, (begin, end) in enumerate(zip(self._queries, self._queries[1:])):
            first, last = self._pages[request : request + 2]
            tokens = (last - first - 1) * self._page_size + self._last[request] if last > first else 0
            k, v = (_tokens(paged_kv_cache, which, self._indices[first:last], tokens, self._kv_layout) for which in (0, 1))
            one = single_prefill_with_kv_cache(q[begin:end], k, v, causal=self._causal, return_lse=True, **self._more)
            outs.append(one[0] if v_scale is None else one[0] * v_scale)
            lses.append(one[1])
        result = torch.cat(outs)
        if out is not None:
            result = out.copy_(result)
        return (result, torch.cat(lses)) if return_lse else result


class BatchPrefillWithSharedPrefixPagedKVCacheWrapper:
    def __init__(self, workspace, kv_layout="NHD"):
        self._unique = BatchPrefillWithPagedKVCacheWrapper(workspace, kv_layout)

    def begin_forward(self, qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len, *shape, **more):
        self._arguments = (qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len, *shape)

    def forward(self, q, k_shared, v_shared, unique_kv_cache, causal=False, **more):
        self._unique.plan(*self._arguments, causal=causal)
        out, lse = self._unique.run(q, unique_kv_cache, return_lse=True)
        shared, shared_lse = single_prefill_with_kv_cache(q, k_shared, v_shared, return_lse=True)
        weight = torch.sigmoid((lse - shared_lse) / LOG2_E)[..., None]
        return (out.float() * weight + shared.float() * (1 - weight)).to(q.dtype)


class BatchDecodeWithSharedPrefixPagedKVCacheWrapper(BatchPrefillWithSharedPrefixPagedKVCacheWrapper):
    def begin_forward(self, paged_kv_indptr, *arguments, **more):
        queries = torch.arange(len(paged_kv_indptr), dtype=torch.int32, device=paged_kv_indptr.device)
        super().begin_forward(queries, paged_kv_indptr, *arguments)


def get_seq_lens(kv_indptr, kv_last_page_len, page_size):
    return (kv_indptr.diff() - 1).clamp(min=0) * page_size + kv_last_page_len


def get_batch_indices_positions(append_indptr, seq_lens, nnz):
    counts = append_indptr.diff()
    batch = torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)
    within = torch.arange(int(nnz), device=counts.device) - append_indptr[batch]
    return batch.int(), (within + (seq_lens - counts)[batch]).int()


def append_paged_kv_cache(k, v, batch_indices, positions, cache, kv_indices, kv_indptr, kv_last_page_len, kv_layout="NHD"):
    k_pages, v_pages = cache if isinstance(cache, tuple) else (cache[:, 0], cache[:, 1])
    size = k_pages.shape[1 if kv_layout == "NHD" else 2]
    pages = kv_indices[(kv_indptr[batch_indices.long()] + positions // size).long()].long()
    slots = (positions % size).long()
    for new, part in (k, k_pages), (v, v_pages):
        (part if kv_layout == "NHD" else part.transpose(1, 2))[pages, slots] = new


class _Missing:
    """What is imported by name, and is an error once it is used."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Missing(f"{self._name}.{name}")

    def __getitem__(self, key):
        return _Missing(f"{self._name}[{key!r}]")

    def __call__(self, *arguments, **more):
        raise ReferenceMissing(self._name)


def _named(name):
    missing, last = _Missing(name), name.rpartition(".")[2]
    return type(last, (), {"__init__": missing.__call__}) if last[0].isupper() else missing


class _Module(types.ModuleType):
    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        found = self._known.get(name)
        return _named(f"{self.__name__}.{name}") if found is None else found


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Every module of FlashInfer; all of them know what stands above."""

    def __init__(self, known):
        self._known = known

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "flashinfer":
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = _Module(spec.name)
        module._known = self._known
        return module

    def exec_module(self, module):
        pass


def _repeat(row, pattern, b, m):
    assert pattern == "h -> b h m 1", pattern
    return row[None, :, None, None].expand(b, -1, m, 1)


def install(device):
    """As the module `flashinfer`."""
    known = {
        name: value
        for name, value in globals().items()
        if name.startswith(("single_", "Batch", "get_", "append_"))
    }
    capability = torch.cuda.get_device_capability() if device == "cuda" else (9, 0)
    known |= {
        "get_compute_capability": lambda device=None: capability,
        # So that the tests' fixtures compile nothing.
        "has_flashinfer_jit_cache": lambda: True,
        "is_sm90a_supported": lambda device=None: capability[0] == 9,
        **dict.fromkeys(("is_sm100a_supported", "is_sm110a_supported"), lambda device=None: capability[0] > 9),
        "is_fa3_backend_supported": lambda *arguments, **more: False,
        "__version__": "reference",
    }
    sys.meta_path.insert(0, _Finder(known))
    if importlib.util.find_spec("einops") is None:  # of which a helper of the tests needs one form of one function
        sys.modules["einops"] = types.SimpleNamespace(repeat=_repeat)
    for name in "decode prefill cascade attention mla utils jit quantization page".split():
        importlib.import_module(f"flashinfer.{name}")
