"""Merges the results of one tree over several ranks: on the processors of a host through shared memory, on its GPUs through
mapped memory, on other GPUs through NCCL."""

from __future__ import annotations

from ctypes import addressof, byref, c_int32, c_int64, c_void_p, create_string_buffer
from typing import Any, Literal, NamedTuple, Sequence

from . import _abi
from ._arguments import expect_whole, text_of
from ._errors import wrong
from ._gpu import GpuHandle, device_index, gpu
from ._library import PYTHON_NAMES, Handle, OfThisProcess, check, filled, lib, make, sized
from ._operations import _floats, _States
from ._tensors import View, dtype_word, expect_on_host, expect_writable, make_like, stream_of, view


class AgreementHashes(NamedTuple):
    """Hashes that ranks must have in common; 0 is not compared."""

    version: int
    attention: int
    options: int
    tree: int


_SUBJECTS = {
    "version": "version of the library",
    "attention": "attention",
    "options": "config or options of its plan",
    "tree": "tree or layout",
}


def _agreement(attention: Any, tree: Any) -> Any:
    own = sized(_abi.deft_agreement)
    if attention is not None:
        own.attention = attention._as_parameter_
    if tree is not None:
        own.tree = tree._as_parameter_
    return own


def agreement_hashes(attention: Any = None, tree: Any = None) -> AgreementHashes:
    """Returns the hashes, for ranks that compare them by other means (TorchPeers uses torch.distributed)."""
    facts = filled(_abi.deft_agreement_hashes, lib.deft_agreement_get_hashes, byref(_agreement(attention, tree)))
    return AgreementHashes(facts.version, facts.attention, facts.options, facts.tree)


def difference(mine: AgreementHashes, theirs: AgreementHashes) -> str | None:
    """Returns the first subject in which two ranks differ."""
    for name, subject in _SUBJECTS.items():
        if getattr(mine, name) != getattr(theirs, name):
            return subject
    return None


class _Merge:
    """The arrays of one call: a rank's results, and the merged results."""

    def __init__(self, out: Any, seen: View, logs: View, heads: tuple[int, int] | None, to: tuple[Any, Any] | None, stream: int = 0) -> None:
        if len(seen.shape) != 3:
            raise wrong("out", f"has shape {list(seen.shape)}, it must be [queries, heads, head_dim]")
        queries, all_heads, dim = seen.shape
        self.begin, end = (0, all_heads) if heads is None else heads
        self.count = expect_whole("heads", end) - expect_whole("heads", self.begin)
        if to is None:
            rows = queries, max(self.count, 0)
            to = make_like(out, (*rows, dim), seen.dtype), make_like(out, rows, _abi.DEFT_F32)
        for written in to:
            expect_writable("to", written)
        self.to = to
        self.own, self.merged = _States(1), _States(1)
        self.own.fill(0, seen, logs)
        self.merged.fill(0, _floats(view("to", to[0], stream)), view("to", to[1], stream))


_NAMES = {**PYTHON_NAMES, "own.out": "out", "own.lse": "lse", "to.out": "to[0]", "to.lse": "to[1]"}


class Peers(OfThisProcess):
    """One rank of the group `name` with `count` ranks. All ranks make the same calls, in the same order. Each call returns when
    all ranks have made it. Otherwise it raises an error that names a rank that has ended, has given up, or was late by
    `timeout` seconds. After an error ranks must meet again. `bytes`: the size of a rank's largest results, out and lse
    together.

    >>> import deft, numpy
    >>> peers = deft.Peers("docs", count=1, rank=0, bytes=4096)
    >>> peers.merge(numpy.ones((1, 1, 2), "float32"), numpy.zeros((1, 1), "float32"))[0]
    array([[[1., 1.]]], dtype=float32)
    """

    _sent_as = "each rank meets the others by the group's name"

    def __init__(self, name: str, count: int, rank: int, *, bytes: int = 64 << 20, timeout: float = 10.0) -> None:
        named = text_of("name", name)
        options = sized(_abi.deft_peers_options, count=count, rank=rank, bytes=bytes)
        options.name, options.timeout_seconds = named, _seconds(timeout)
        self._handle = Handle(make(lib.deft_peers_meet, byref(options)), lib.deft_peers_destroy)
        self.count, self.rank = count, rank

    def agree(self, attention: Any = None, tree: Any = None) -> None:
        """Raises an error if ranks have different versions of the library, attentions or trees. Call it before the first run."""
        check(lib.deft_peers_agree(self._handle, byref(_agreement(attention, tree))))

    def merge(self, out: Any, lse: Any, *, heads: tuple[int, int] | None = None, to: tuple[Any, Any] | None = None) -> tuple[Any, Any]:
        """Merges `out` [queries, heads, dim] and `lse` [queries, heads] of all ranks' tokens. Returns (out, lse) for `heads`
        (begin, end), or for all heads; writes them to `to` if given."""
        expect_on_host("out", seen := _floats(view("out", out)), "must be in the host's memory")
        merge = _Merge(out, seen, view("lse", lse), heads, to)
        check(lib.deft_peers_merge(self._handle, merge.own.address, merge.begin, merge.count, merge.merged.address), _NAMES)
        return merge.to

    def __repr__(self) -> str:
        return f"<deft.Peers: rank {self.rank} of {self.count}>"


_FLOATS = {"float32": _abi.DEFT_F32, "float16": _abi.DEFT_F16, "bfloat16": _abi.DEFT_BF16}


Transport = Literal["auto", "mapped", "nccl"]
PeersId = bytes  # of GpuPeers, whose own `bytes` is another thing
_TRANSPORTS = {"auto": _abi.DEFT_TRANSPORT_AUTO, "mapped": _abi.DEFT_TRANSPORT_MAPPED, "nccl": _abi.DEFT_TRANSPORT_NCCL}


class GpuPeers(OfThisProcess):
    """A rank's end of a group of GPUs, for results of at most `queries` x `heads` x `head_dim`. Ranks of one host meet by the
    group's `name`, as those of Peers do. `transport` says how they exchange results: "mapped" maps each other's memory, "nccl"
    uses NCCL, and "auto" maps memory if every pair of ranks can, else uses NCCL. GpuPeers returns when all ranks have come.
    Otherwise it raises an error that names the rank that is late, differs, or cannot. Ranks are processes of one user, or
    threads. All ranks merge equally often, in the same order, each on one stream.

    Instead of `name` you can pass `id`, for ranks on any hosts, which use NCCL. One rank makes it with GpuPeers.make_id(),
    hands it to the others, and stays until all have met. Or pass `memories`: the address of each rank's memory as this rank's
    GPU maps it, zeros at first, GpuPeers.bytes(...) each. Keep them until the last merge has ended.

    `merged`: the heads (begin, end) that this rank merges at most; NCCL sends it no others."""

    _sent_as = "each rank meets the others by the group's name"

    @staticmethod
    def make_id() -> PeersId:
        """Makes an id for a new group of ranks that use NCCL."""
        made = create_string_buffer(_abi.DEFT_PEERS_ID_BYTES)
        check(lib.deft_gpu_peers_make_id(made))
        return made.raw

    @staticmethod
    def bytes(count: int, queries: int, heads: int, head_dim: int, dtype: Any = "bfloat16") -> int:
        """Returns the bytes of a rank's memory: two buffers of its results, and flags."""
        size = c_int64()
        check(lib.deft_gpu_peers_get_bytes(byref(_options(count, 0, queries, heads, head_dim, dtype)), byref(size)))
        return size.value

    def __init__(
        self,
        name: str | None,
        count: int,
        rank: int,
        *,
        queries: int,
        heads: int,
        head_dim: int,
        dtype: Any = "bfloat16",
        device: Any = "cuda",
        timeout: float = 10.0,
        memories: Sequence[int] | None = None,
        id: PeersId | None = None,
        transport: Transport = "auto",
        merged: tuple[int, int] | None = None,
    ) -> None:
        options = _options(count, rank, queries, heads, head_dim, dtype)
        if transport not in _TRANSPORTS:
            raise wrong("transport", f"is {transport!r}, it must be 'auto', 'mapped' or 'nccl'")
        options.transport = _TRANSPORTS[transport]
        if merged is not None:
            options.head_begin = expect_whole("merged", merged[0])
            options.head_count = expect_whole("merged", merged[1]) - merged[0]
        options.timeout_seconds = _seconds(timeout)
        index = device_index(device)
        if index is None:
            raise wrong("device", f"is {device!r}, it must be a GPU", "processors merge by deft.Peers")
        given = [way for way, value in {"name": name, "memories": memories, "id": id}.items() if value is not None]
        if not given:
            raise wrong("memories", "is not given, and no name either")
        if len(given) > 1:
            raise wrong(given[1], f"is given beside {'a name' if given[0] == 'name' else given[0]}")
        if name is not None:
            made = make(lib.deft_gpu_peers_meet, gpu(index), byref(options), text_of("name", name))
        elif id is not None:
            if not isinstance(id, PeersId) or len(id) != _abi.DEFT_PEERS_ID_BYTES:
                raise wrong("id", f"must be {_abi.DEFT_PEERS_ID_BYTES} bytes, as make_id() gives them")
            held = create_string_buffer(id, len(id))
            options.id = addressof(held)
            made = make(lib.deft_gpu_peers_make, gpu(index), byref(options))
        elif memories is not None:
            if len(memories) != count:
                raise wrong("memories", f"has {len(memories)} addresses for {count} ranks")
            mapped = (c_void_p * max(1, count))(*memories)
            options.memories = addressof(mapped)
            made = make(lib.deft_gpu_peers_make, gpu(index), byref(options))
        self._handle = GpuHandle(made, lib.deft_gpu_peers_destroy)
        self.count, self.rank, self.device, self._merged = count, rank, index, merged

    @property
    def transport(self) -> str:
        """The transport in use: "mapped" or "nccl"."""
        found = c_int32()
        check(lib.deft_gpu_peers_get_transport(self._handle, byref(found)))
        return next(name for name, value in _TRANSPORTS.items() if value == found.value)

    def agree(self, attention: Any = None, tree: Any = None) -> None:
        """Checks the ranks as Peers.agree does, if they have met by a name or an id."""
        check(lib.deft_gpu_peers_agree(self._handle, byref(_agreement(attention, tree))))

    def merge(
        self, out: Any, lse: Any, *, heads: tuple[int, int] | None = None, to: tuple[Any, Any] | None = None, stream: int | None = None
    ) -> tuple[Any, Any]:
        """Merges like Peers.merge, but enqueues the work on the stream, where a graph can capture it. `to` may be `out` and
        `lse`. `heads` is by default the `merged` heads of this rank."""
        first = view("out", out)
        if first.device_type != _abi.DEFT_DEVICE_CUDA or first.device != self.device:
            raise wrong("out", f"must be on cuda:{self.device}")
        if stream is None:
            stream = stream_of(out, first.device)
        merge = _Merge(out, _floats(view("out", out, stream)), view("lse", lse, stream), heads or self._merged, to, stream)
        check(lib.deft_gpu_peers_merge(self._handle, merge.own.address, merge.begin, merge.count, merge.merged.address, stream), _NAMES)
        return merge.to

    def check(self) -> None:
        """Raises an error after a finished merge found a rank late; the error names the rank. Later merges write nothing."""
        check(lib.deft_gpu_peers_check(self._handle))

    def __repr__(self) -> str:
        return f"<deft.GpuPeers: rank {self.rank} of {self.count}, cuda:{self.device}>"


def _options(count: int, rank: int, queries: int, heads: int, head_dim: int, dtype: Any) -> Any:
    word = dtype_word(dtype)
    if word not in _FLOATS:
        raise wrong("dtype", f"is {word}, it must be float32, float16 or bfloat16")
    sizes = {"count": count, "rank": rank, "queries": queries, "heads": heads, "head_dim": head_dim}
    return sized(_abi.deft_gpu_peers_options, type=_FLOATS[word], **{name: expect_whole(name, value) for name, value in sizes.items()})


def _seconds(timeout: Any) -> float:
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or timeout <= 0:
        raise wrong("timeout", f"is {timeout!r}, it must be a number of seconds above 0")
    return float(timeout)
