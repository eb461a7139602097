"""What became of each test."""

import random
import re
import time
from collections import Counter, defaultdict

import pytest

OUTSIDE = re.compile(r"^(\w+)=.* is not supported here: (.*)$")


def judge(error):
    """(outcome, reason) of what a test has raised."""
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    found = OUTSIDE.match(text)
    if isinstance(error, NotImplementedError) and found:
        return "outside", f"{found[1]}: {re.sub(r'[0-9]+', '#', found[2])}"
    if type(error).__name__ == "ReferenceMissing":
        return "without a reference", text
    if type(error).__name__ == "OutOfMemoryError" or "out of memory" in text:  # torch's, the driver's, or deft's
        return "too large for the memory", type(error).__name__
    return "failed", f"{type(error).__name__}: {re.sub(r'-?[0-9][0-9.e+-]*', '#', text)[:200]}"


class Judge:
    """A plug-in of pytest."""

    def __init__(self, used, most, seconds, seed, part=(0, 1)):
        """`part`: which of how many; each draws the same cases, and runs every so manieth of them."""
        self._used, self._most, self._seed, self._part = used, most, seed, part
        self._seconds, self._end = seconds, None
        self._functions = defaultdict(Counter)
        self._kinds = defaultdict(list)  # (outcome, reason) -> tests

    def _count(self, name, outcome, reason=""):
        self._functions[name.partition("[")[0]][outcome] += 1
        if reason:
            self._kinds[outcome, reason].append(name)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        if self._most is not None:
            self._draw(items)
        which, parts = self._part
        items[:] = items[which::parts]

    def _draw(self, items):
        by_function = defaultdict(list)
        for item in items:
            by_function[item.nodeid.partition("[")[0]].append(item)
        drawn = random.Random(self._seed)
        kept = set()
        for function in sorted(by_function):
            cases = by_function[function]
            kept.update(drawn.sample(cases, min(self._most, len(cases))))
            if self._part[0] == 0:
                self._functions[function]["not drawn"] += max(len(cases) - self._most, 0)
        items[:] = [item for item in items if item in kept]

    def pytest_collection_finish(self, session):
        """Importing and collecting are not counted."""
        self._end = None if self._seconds is None else time.monotonic() + self._seconds

    def pytest_collectreport(self, report):
        if report.failed and self._part[0] == 0:
            self._count(report.nodeid, "not collected", str(report.longrepr).strip().splitlines()[-1][:200])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        self._used.names.clear()
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item):
        if self._end is not None and time.monotonic() > self._end:
            pytest.skip("no time left")

    def pytest_runtest_makereport(self, item, call):
        if call.when == "teardown" or (call.when == "setup" and call.excinfo is None):
            return
        error = None if call.excinfo is None else call.excinfo.value
        if isinstance(error, (pytest.skip.Exception, pytest.xfail.Exception)):
            late = str(error) == "no time left"
            self._count(item.nodeid, "not run" if late else "skipped by the test", str(error)[:200])
        elif error is not None:
            outcome, reason = judge(error)
            if outcome == "failed" and not self._used.names:  # none of ours was made
                outcome = "of other parts of FlashInfer"
            self._count(item.nodeid, outcome, reason)
        else:
            self._count(item.nodeid, "passed" if self._used.names else "of other parts of FlashInfer")

    def record(self):
        counts = sum(self._functions.values(), Counter())
        kinds = [
            {"outcome": outcome, "reason": reason, "count": len(tests), "example": tests[0]}
            for (outcome, reason), tests in sorted(self._kinds.items(), key=lambda kind: (kind[0][0], -len(kind[1])))
        ]
        return {"counts": dict(counts), "kinds": kinds, "functions": {name: dict(c) for name, c in self._functions.items()}}


def joined(records):
    """The record of all parts."""
    functions, kinds = defaultdict(Counter), {}
    for record in records:
        for name, counts in record["functions"].items():
            functions[name].update(counts)
        for kind in record["kinds"]:
            kept = kinds.setdefault((kind["outcome"], kind["reason"]), {**kind, "count": 0})
            kept["count"] += kind["count"]
    ordered = sorted(kinds.values(), key=lambda kind: (kind["outcome"], -kind["count"], kind["reason"]))
    counts = dict(sum(functions.values(), Counter()))
    functions = {name: dict(functions[name]) for name in sorted(functions)}
    return {**records[0], "counts": counts, "kinds": ordered, "functions": functions}
