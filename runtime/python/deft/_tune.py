"""Finds the fastest configs on this machine, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from html import escape
from time import monotonic
from typing import Any, Callable, Iterable, Mapping, Sequence

from . import _abi
from ._arguments import expect, expect_whole, kind_of
from ._attention import Attention
from ._errors import KINDS, InternalError, UsageError, wrong
from ._gpu import device_index
from ._library import FOLDER
from ._params import merged
from ._tree import TreeView


def html_table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Writes a table as HTML, for notebooks."""
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><tr>{head}</tr>{body}</table>"


@dataclass(frozen=True)
class TuneProgress:
    """The progress of a run."""

    tree_class: str  # of trees that are alike
    stage: str  # "compile" (before the first class), "search", "final", "confirm"; "sparse", which is about lists
    best_us: float  # 0: not known yet
    untuned_us: float
    seconds_left: float  # of the budget; below 0: there is none
    class_index: int
    classes: int
    measured: int  # configs of the class; kinds of lists
    left: int  # at most


@dataclass(frozen=True)
class TunedClass:
    """The result for the trees of one class."""

    tree_class: str
    config: str  # as files of configs have it (JSON)
    note: str  # in words: why the untuned config stays
    untuned_us: float
    tuned_us: float
    gain: float  # untuned over tuned, confirmed
    held_out_gain: float  # on trees that were not searched on; 0: there were none
    trees: int  # of it that were measured
    is_done: bool  # else the run ended before
    keeps_untuned: bool  # nothing was clearly faster
    is_complete: bool  # else its search was cut short by the budget
    candidates: int  # that were measured
    rejected: int  # that failed, or were wrong

    @property
    def _outcome(self) -> str:
        if not self.is_done:
            return "the run ended before"
        return "the untuned config stays" if self.keeps_untuned else ""


@dataclass(frozen=True)
class TunedLists:
    """The result for one list length and one number of queries, in sparse layers."""

    budget: int
    queries: int
    item_tokens: int  # of the items that they are cut into; 0: the rule's cut stays
    untuned_us: float  # of a layer by the rules
    tuned_us: float
    gain: float  # untuned over tuned


@dataclass(frozen=True)
class TunedSparse:
    """The result for the sparse layers of an attention that selects."""

    tile_tokens: int  # of the kernel that reads lists
    stages: int
    warps: int
    is_packaged: bool  # it is the package's, so only cuts were tuned
    tile_gain: float  # over the rule's tile, in the geometric mean of all lists
    known: int  # lists that were tuned before
    end: str  # "complete", "budget" or "cancelled"
    seconds: float
    file: str  # where they are; empty: nothing was found
    lists: list[TunedLists] = field(default_factory=list)  # that were tuned by this run

    def __str__(self) -> str:
        tile = f"tiles of {self.tile_tokens} tokens, {self.stages} stages, {self.warps} warps"
        known = f", {self.known} known before" if self.known else ""
        return f"sparse layers: {tile}; {len(self.lists)} kinds of lists tuned{known}, {self.end} after {self.seconds:.0f} s"


@dataclass(frozen=True)
class TuneResult:
    """The results of a run. In a notebook it shows itself as tables."""

    device: str
    end: str  # "complete", "budget" or "cancelled"
    seconds: float
    measured: int  # measurements of this run
    reused: int  # of earlier ones, out of the journal
    config_file: str  # where the results are; empty, as the journal, where there were no trees
    journal: str
    classes: list[TunedClass] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    sparse: TunedSparse | None = None  # none: the attention selects nothing, or the run did not come to it

    def __str__(self) -> str:
        lines = [f"{self.device}: {self.end} after {self.seconds:.0f} s, {self.measured} measurements"]
        for one in self.classes:
            times = f"{one.untuned_us:.1f} us untuned, {one.tuned_us:.1f} us tuned ({one.gain:.2f}x)" if one.is_done else ""
            lines.append(f"  {one.tree_class}: {', '.join(filter(None, (times, one._outcome)))}")
        if self.sparse:
            lines.append(f"  {self.sparse}")
        return "\n".join([*lines, *(f"  warning: {warning}" for warning in self.warnings)])

    def _repr_html_(self) -> str:
        heads = ("class of trees", "untuned, us", "tuned, us", "gain", "candidates", "")
        rows = [
            (
                one.tree_class,
                *((f"{one.untuned_us:.1f}", f"{one.tuned_us:.1f}", f"{one.gain:.2f}") if one.is_done else ("", "", "")),
                str(one.candidates),
                one._outcome,
            )
            for one in self.classes
        ]
        about = f"{self.device}, {self.end} after {self.seconds:.0f} s"
        of_classes = html_table(f"{about}; kept in {self.config_file}", heads, rows) if self.config_file else ""
        if self.sparse is None:
            return of_classes or html_table(about, heads, rows)
        heads = ("budget", "queries", "by the rules, us", "tuned, us", "gain", "items of")
        rows = [
            (
                *map(str, (one.budget, one.queries)),
                *(f"{us:.1f}" for us in (one.untuned_us, one.tuned_us)),
                f"{one.gain:.2f}",
                f"{one.item_tokens} tokens" if one.item_tokens else "as by the rule",
            )
            for one in self.sparse.lists
        ]
        return of_classes + html_table(str(self.sparse), heads, rows)


def tune(
    attention: Attention, workload: str | Iterable[str] | None = None, budget: float | None = None, *,
    trees: Iterable[TreeView] = (), held_out: Iterable[TreeView] = (), params: Mapping[str, Any] | None = None, device: Any = None,
    candidates: int = 0, threads: int = 0, seed: int = 0, fresh: bool = False, from_related: bool = False,
    shard: tuple[int, int] | None = None,
    config_file: str | os.PathLike[str] | None = None, journal: str | os.PathLike[str] | None = None,
    records_folder: str | os.PathLike[str] | None = None, note: str | None = None,
    progress: Callable[[TuneProgress], Any] | None = None, log: Callable[[str], Any] | None = None,
) -> TuneResult:
    """Finds the fastest configs for trees like yours, and stores them for this device. Attentions that are compiled or loaded
    later use them. If an attention selects, its sparse layers are tuned on a GPU after the trees, or on their own if you pass
    neither a workload nor trees. With a `config_file` only the trees are tuned.

    `workload` names trees as `deftc workloads` lists them ("few_shot", "few_shot:prompt=4000,branches=50"). `trees` are your
    own, and the result has to hold on the `held_out` trees as well. `budget` is in seconds. `device` is "cpu" or "cuda", by
    default a GPU if there is one. `progress` and `log` receive the progress, in figures and in words.

    `shard` is (index, count), with the index from 0, for a session that several processes tune on devices of one model. This
    process then tunes only some classes of trees and writes only its journal. `merge_shards` joins the journals.

    Ctrl-C ends the run and keeps the finished classes. The run has its own process, so yours may use the GPU, but that disturbs
    the measurements."""
    expect("attention", attention, _abi.deft_attention)
    lists: dict[str, list[TreeView]] = {}
    for name, given in (("trees", trees), ("held_out", held_out)):
        if not hasattr(given, "__iter__"):
            raise wrong(name, f"is {kind_of(given)}, it must be a list of trees")
        lists[name] = list(given)
        for place, tree in enumerate(lists[name]):
            expect(f"{name}[{place}]", tree, _abi.deft_tree)
    trees, held_out = lists.values()
    if budget is not None and (not isinstance(budget, (int, float)) or not 0 <= budget <= 1e9):
        raise wrong("budget", f"is {budget!r}, it must be seconds from 0 on", "0 or None sets no end")
    workloads = [workload] if isinstance(workload, str) else list(workload or ())
    own = [("", tree.to_json(), False) for tree in trees] + [("", tree.to_json(), True) for tree in held_out]
    if not workloads and not own and attention.selects is None:
        raise UsageError("there is nothing to tune for", "give a workload or trees")
    shard_index, shard_count = _shard_of(shard)
    index = device_index(device) if device is not None else None
    if index:
        raise UsageError(f"tuning takes the first GPU, not {index}", "set CUDA_VISIBLE_DEVICES")
    values = merged(attention.captured, params)
    for param in attention.params:
        if param.sized_by and param.name in (params or ()):
            raise wrong(param.name, f"is an array over {param.sized_by}, whose values tuning draws for its own trees")
        if param.sized_by:
            values.pop(param.name, None)
    request = {
        "origin": attention._origin,
        "params": {name: _numbers_of(value) for name, value in values.items()},
        "workloads": workloads,
        "trees": own,
        "options": {
            "budget_seconds": float(budget or 0),
            "seed": seed,
            "config_file": _path(config_file),
            "journal": _path(journal),
            "records_folder": _path(records_folder),
            "note": note,
            "device": "any" if device is None else "cpu" if index is None else "gpu",
            "candidates": expect_whole("candidates", candidates, least=0),
            "threads": expect_whole("threads", threads, least=0),
            "is_fresh": fresh,
            "from_related": from_related,
            "shard": shard_index,
            "shard_count": shard_count,
        },
    }
    return _follow(_start(request), progress, log)


def _shard_of(shard: tuple[int, int] | None) -> tuple[int, int]:
    """Returns the shard; (0, 0) means the whole session."""
    if shard is None:
        return 0, 0
    if not isinstance(shard, (tuple, list)) or len(shard) != 2:
        raise wrong("shard", f"is {shard!r}, it must be (index, count)", "(0, 4) is the first of four")
    index, count = (expect_whole(f"shard[{place}]", value, least=place) for place, value in enumerate(shard))
    if index >= count:
        raise wrong("shard", f"is {tuple(shard)}, indices of {count} shards are 0 to {count - 1}")
    return index, count


def _numbers_of(value: Any) -> Any:
    """Returns a parameter's value for JSON: a number, or one row of numbers. Arrays of more dimensions are flattened, as runs
    take them."""
    if not hasattr(value, "tolist"):
        return value
    return value.tolist() if value.ndim == 0 else value.reshape(-1).tolist()


def _path(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.path.abspath(path)


def _start(request: Any) -> subprocess.Popen[str]:
    paths = [str(FOLDER.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    worker = subprocess.Popen(
        [sys.executable, "-m", "deft._tune_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        start_new_session=True,  # the terminal's Ctrl-C comes to this process alone, which hands it on
    )
    assert worker.stdin is not None
    try:
        json.dump(request, worker.stdin)
        worker.stdin.close()
    except BrokenPipeError:  # what it says on its way out is read
        pass
    return worker


class _Pace:
    """Limits reports of progress: a worker sends one for each measurement, hundreds a second."""

    def __init__(self) -> None:
        self._last: Any = None
        self._due = 0.0

    def is_due(self, said: Mapping[str, Any]) -> bool:
        figures = {**said, "seconds_left": None}
        now = monotonic()
        if figures == self._last and now < self._due:
            return False
        self._last, self._due = figures, now + 0.25
        return True


def _follow(
    worker: subprocess.Popen[str],
    progress: Callable[[TuneProgress], Any] | None,
    log: Callable[[str], Any] | None,
) -> TuneResult:
    """Passes on the worker's messages until it ends."""
    assert worker.stdout is not None
    ended: dict[str, Any] = {}
    pace = _Pace()
    try:
        while True:
            try:
                line = worker.stdout.readline()
                if not line:
                    break
                said = json.loads(line)
                if "progress" in said:
                    if progress is not None and pace.is_due(said["progress"]):
                        progress(TuneProgress(**said["progress"]))
                elif "note" in said and log is not None:
                    log(said["note"])
                elif "summary" in said or "error" in said:
                    ended = said
            except KeyboardInterrupt:
                worker.send_signal(signal.SIGINT)
        code = worker.wait()
    except BaseException:  # what a callback raised
        worker.send_signal(signal.SIGINT)
        worker.wait()
        raise
    finally:
        worker.stdout.close()
    if "error" in ended:
        raise KINDS.get(ended["status"], InternalError)(ended["error"], ended["hint"], ended["field"])
    if "summary" not in ended:
        raise InternalError(f"the process that tunes ended with {code}")
    return _result_of(ended["summary"])


def _result_of(summary: dict[str, Any]) -> TuneResult:
    classes = [TunedClass(**one) for one in summary["classes"]]
    sparse = summary["sparse"]
    if sparse is not None:
        sparse = TunedSparse(**{**sparse, "lists": [TunedLists(**one) for one in sparse["lists"]]})
    return TuneResult(**{**summary, "classes": classes, "sparse": sparse})
