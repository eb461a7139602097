"""Results of one tree over several ranks become one: for the processors of a host, by shared memory."""

from __future__ import annotations

from ctypes import byref
from typing import Any, NamedTuple

from . import _abi
from ._arguments import expect_whole, text_of
from ._errors import wrong
from ._library import Handle, OfThisProcess, check, filled, lib, make, sized
from ._operations import _floats, _States
from ._tensors import dtype_text, expect_on_host, expect_writable, make_like, view


class AgreementHashes(NamedTuple):
    """What ranks must have in common, as numbers; 0: not compared."""

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
    """For ranks that compare them by means of their own (TorchPeers does, by torch.distributed)."""
    facts = filled(_abi.deft_agreement_hashes, lib.deft_agreement_get_hashes, byref(_agreement(attention, tree)))
    return AgreementHashes(facts.version, facts.attention, facts.options, facts.tree)


def difference(mine: AgreementHashes, theirs: AgreementHashes) -> str | None:
    """The first subject in which two ranks differ."""
    for name, subject in _SUBJECTS.items():
        if getattr(mine, name) != getattr(theirs, name):
            return subject
    return None


class Peers(OfThisProcess):
    """A rank of a group, `name`, of `count` ranks. All ranks make the same calls, in the same order. Each call returns when all
    ranks have made it, or raises an error that names a rank that has ended, has given up, or was late by `timeout` seconds. After
    an error ranks must meet again. `bytes`: the size of a rank's largest results, out and lse together.

    >>> import deft, numpy
    >>> peers = deft.Peers("docs", count=1, rank=0, bytes=4096)
    >>> peers.merge(numpy.ones((1, 1, 2), "float32"), numpy.zeros((1, 1), "float32"))[0]
    array([[[1., 1.]]], dtype=float32)
    """

    _sent_as = "each rank meets the others by the group's name"

    def __init__(self, name: str, count: int, rank: int, *, bytes: int = 64 << 20, timeout: float = 10.0) -> None:
        if not isinstance(timeout, (int, float)) or timeout <= 0:
            raise wrong("timeout", f"is {timeout!r}, it must be a number of seconds above 0")
        named = text_of("name", name)
        options = sized(_abi.deft_peers_options, count=count, rank=rank, bytes=bytes)
        options.name, options.timeout_seconds = named, float(timeout)
        self._handle = Handle(make(lib.deft_peers_meet, byref(options)), lib.deft_peers_destroy)
        self.count, self.rank = count, rank

    def agree(self, attention: Any = None, tree: Any = None) -> None:
        """Call it before the first run: an error if ranks have different versions of the library, attentions or trees."""
        check(lib.deft_peers_agree(self._handle, byref(_agreement(attention, tree))))

    def merge(self, out: Any, lse: Any, *, heads: tuple[int, int] | None = None, to: tuple[Any, Any] | None = None) -> tuple[Any, Any]:
        """Merges `out` [queries, heads, dim] and `lse` [queries, heads] of all ranks' tokens. Returns (out, lse) for `heads`
        (begin, end), or all of them; written to `to` if given."""
        expect_on_host("out", seen := _floats("out", view("out", out)), "must be in the host's memory")
        logs = view("lse", lse)
        if logs.dtype != _abi.DEFT_F32:
            raise wrong("lse", f"is {dtype_text(logs.dtype)}, it must be float32")
        if len(seen.shape) != 3:
            raise wrong("out", f"has shape {list(seen.shape)}, it must be [queries, heads, head_dim]")
        begin, end = (0, seen.shape[1]) if heads is None else heads
        count = expect_whole("heads", end) - expect_whole("heads", begin)
        queries, _, dim = seen.shape
        if to is None:
            to = make_like(out, (queries, max(count, 0), dim), seen.dtype), make_like(out, (queries, max(count, 0)), _abi.DEFT_F32)
        for written in to:
            expect_writable("to", written)
        own, merged = _States(1), _States(1)
        own.fill(0, seen, logs)
        merged.fill(0, _floats("to", view("to", to[0])), view("to", to[1]))
        check(lib.deft_peers_merge(self._handle, own.address, begin, count, merged.address))
        return to

    def __repr__(self) -> str:
        return f"<deft.Peers: rank {self.rank} of {self.count}>"
