"""How long vLLM's host makes the metadata of attention: in steps of decoding, and in steps in which requests join."""

import contextlib
import ctypes
import functools
import importlib
import statistics
import sys
import time

SHARED, OWN = 4096, 32  # tokens of a prompt
GROUPS, EVERY = 16, 10  # groups of requests, one of which ends and is replaced in every so manieth step
ROUNDS = 5  # how often each group is replaced


def prompts_of(count, tokens):
    """For `count` requests and those that replace them. `tokens`: of a count and a seed."""
    shared = tokens(SHARED, 4)
    return [shared + tokens(OWN, 10_000 + i) for i in range(count * (1 + ROUNDS))]


def length_of(number, count):
    """Tokens that a request writes. The first ones end group by group; those that replace them last as long as all groups."""
    return GROUPS * EVERY + (number % GROUPS * EVERY if number < count else 0)


# Functions of the plug-in that a build calls, outer ones first.
PLACES = {
    "metadata": ("deft.vllm.planner", "work_of"),
    "host's table": ("deft.vllm.planner", "on_host"),
    "known table": ("deft.vllm.planner", "Tables.read"),  # not called where the host does not know it
    "steps": ("deft._adapters.steps", "Steps.plan"),
    "batch": ("deft._paged_batch", "PagedBatch.update"),
    "library's step": ("deft._library", "lib.deft_paged_batch_update_plans"),
    "library's upload": ("deft._library", "lib.deft_gpu_plan_upload"),
    "torch's stream": ("deft._adapters.steps", "Steps._stream"),
    # These are called ahead of a build, where the model runner fills its tables.
    "pages": ("deft.vllm.host_tables", "_Mirror.write"),
    "gathering": ("deft.vllm.host_tables", "_Mirror.gather"),
}
PLANS = "new plans"  # by the library's log; part of its step


class Sections:
    """The time of each place in a build, less that of the places it calls, and its number of calls. Places of modules that
    are not loaded are left out."""

    def __init__(self, places=PLACES):
        self._places, self._restore = places, contextlib.ExitStack()
        self._within = []  # of the calls that are under way, the time of places in them
        self.clear()

    def clear(self):
        self.times, self.calls = {}, {}

    def note(self, name, taken):
        self.times[name] = self.times.get(name, 0.0) + taken
        self.calls[name] = self.calls.get(name, 0) + 1

    def __enter__(self):
        for name, (module, path) in self._places.items():
            owner, *inner = sys.modules.get(module), *path.split(".")
            for part in inner[:-1]:
                owner = getattr(owner, part, None)
            if hasattr(owner, inner[-1]):
                function = getattr(owner, inner[-1])
                self._restore.callback(setattr, owner, inner[-1], function)
                setattr(owner, inner[-1], self._timed(name, function))
        if deft := sys.modules.get("deft"):
            deft.set_log(lambda message: message.kind == "plan" and self.note(PLANS, 1e-6 * message.duration_us))
            self._restore.callback(deft.set_log, None)
        return self

    def __exit__(self, *error):
        self._restore.close()

    def _timed(self, name, function):
        @functools.wraps(function)
        def timed(*arguments, **more):
            self._within.append(0.0)
            began = time.perf_counter()
            try:
                return function(*arguments, **more)
            finally:
                taken = time.perf_counter() - began
                self.note(name, taken - self._within.pop())
                if self._within:
                    self._within[-1] += taken

        return timed


class Build:
    """What one build took, in seconds."""

    def __init__(self, taken, busy, sections, ahead=None):
        """`ahead`: times since the build before."""
        self.taken, self.waited = taken, max(0.0, taken - busy)
        self.times, self.calls = (sections.times, sections.calls) if sections else ({}, {})
        if self.times:
            self.times["rest"] = taken - sum(own for name, own in self.times.items() if name != PLANS)
        for name, own in (ahead or {}).items():
            self.times[f"ahead: {name}"] = own


class Watch:
    """Times of the builders of metadata, in the engine's process."""

    def __init__(self, decoding):
        """`decoding`: queries of a request that decodes."""
        self._decoding, self._is_on = decoding, False
        self.sections = None  # a Sections that splits each build into its places
        self.runner = None
        self.clear()

    def clear(self):
        self.steady, self.joins, self.again = [], [], []

    def switch(self, is_on):
        self._is_on = is_on

    def wrap(self, builder):
        build = builder.build

        def timed(common_prefix_len, common_attn_metadata, *arguments, **more):
            ahead = self.sections and self.sections.times
            if self.sections:
                self.sections.clear()
            busy, began = time.thread_time(), time.perf_counter()
            made = build(common_prefix_len, common_attn_metadata, *arguments, **more)
            taken = time.perf_counter() - began
            if self._is_on:
                seen = Build(taken, time.thread_time() - busy, self.sections, ahead)
                joins = common_attn_metadata.max_query_len > self._decoding
                (self.joins if joins else self.steady).append(seen)
                if self.sections and not joins:  # once more with everything in the processor's caches, and nothing new
                    began = time.perf_counter()
                    build(common_prefix_len, common_attn_metadata, *arguments, **more)
                    self.again.append(time.perf_counter() - began)
            if self.sections:
                self.sections.clear()
            return made

        builder.build = timed

    def wrap_all(self, worker):
        self.runner = type(worker.model_runner).__module__
        for group in [group for groups in worker.model_runner.attn_groups for group in groups]:
            self.wrap(group.get_metadata_builder())


def in_sections(builds):
    """Of each section: its time where it was called, and calls of a build on average."""
    names = dict.fromkeys(name for build in builds for name in build.times)
    return {name: {**summary([build.times[name] for build in builds if name in build.times]),
                   "calls": round(sum(build.calls.get(name, 0) for build in builds) / len(builds), 3)} for name in names}


def summary(times):
    """In milliseconds."""
    if not times:
        return {"count": 0}
    ordered = sorted(times)
    late = ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
    return {"count": len(times), "median_ms": round(1e3 * statistics.median(ordered), 4), "p99_ms": round(1e3 * late, 4)}


def drive(engine, watch, prompts, count, params_of, sections=None):
    """Keeps `count` requests running until no prompt is left. `params_of` takes a number of tokens. `sections` splits builds
    into their places, which makes them longer."""
    with sections or contextlib.nullcontext():
        watch.sections = sections
        steps = _drive(engine, watch, prompts, count, params_of, "s" if sections else "h")
        watch.sections = None
    if sections:
        return {"steady": in_sections(watch.steady), "joins": in_sections(watch.joins), "again": summary(watch.again)}
    seen = {name: summary([build.taken for build in builds]) for name, builds in (("build", watch.steady), ("build_joins", watch.joins))}
    waits = [build.waited for build in watch.steady + watch.joins]
    return {**seen, "waits": summary(waits), "step": summary(steps), "runner": watch.runner}


def _drive(engine, watch, prompts, count, params_of, kind):
    name, steps = f"host{kind}{count}", []

    def add(number, length):
        engine.add_request(f"{name}-{number}", {"prompt_token_ids": prompts[number % len(prompts)]}, params_of(length))

    add(len(prompts), 2)  # fills the prefix cache
    while engine.has_unfinished_requests():
        engine.step()
    watch.clear()
    begun = running = 0
    while begun < len(prompts) or running:
        while running < count and begun < len(prompts):
            add(begun, length_of(begun, count))
            begun, running = begun + 1, running + 1
        watch.switch(count < begun < len(prompts))  # neither before the first are in nor when others can no more join
        began = time.perf_counter()
        outputs = engine.step()
        if count < begun < len(prompts):
            steps.append(time.perf_counter() - began)
        running -= sum(output.finished for output in outputs)
    watch.switch(False)
    return steps


def driver_calls(times=300):
    """Microseconds of the driver's calls in a step, on an idle GPU. That of `cuCtxGetCurrent` is the cost of a call from Python."""
    import torch

    cuda, stream = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    host, device = torch.zeros(1 << 14, dtype=torch.uint8, pin_memory=True), torch.zeros(1 << 14, dtype=torch.uint8, device="cuda")
    event, seen = ctypes.c_void_p(), ctypes.c_void_p()
    cuda.cuEventCreate(ctypes.byref(event), 2)  # without times
    places = ctypes.c_uint64(device.data_ptr()), ctypes.c_void_p(host.data_ptr())
    calls = {
        "cuCtxGetCurrent": lambda: cuda.cuCtxGetCurrent(ctypes.byref(seen)),
        "cuStreamIsCapturing": lambda: cuda.cuStreamIsCapturing(stream, ctypes.byref(seen)),
        "cuMemcpyHtoDAsync": lambda: cuda.cuMemcpyHtoDAsync_v2(*places, ctypes.c_size_t(1 << 14), stream),
        "cuEventRecord": lambda: cuda.cuEventRecord(event, stream),
        "cuEventQuery": lambda: cuda.cuEventQuery(event),
    }

    def median_of(call):
        taken = []
        for _ in range(times):
            began = time.perf_counter()
            call()
            taken.append(time.perf_counter() - began)
        torch.cuda.synchronize()
        return round(1e6 * statistics.median(taken), 2)

    return {name: median_of(call) for name, call in calls.items()}


def text_of(host):
    lines = []
    for count, seen in host.items():
        for name, what in (("build", "steps of decoding"), ("build_joins", "steps with new requests"), ("step", "whole steps"),
                           ("waits", "of a build its thread does not run")):
            if seen.get(name, {}).get("count"):
                lines.append(f"{count} requests: {what}: median {seen[name]['median_ms']} ms, 99th percentile "
                             f"{seen[name]['p99_ms']} ms of {seen[name]['count']}")
        for kind, sections in seen.get("sections", {}).items():
            if kind == "again":
                lines.append(f"{count} requests: steps of decoding again at once: {sections}")
                continue
            lines += [f"{count} requests: {kind}: {name}: {own['median_ms']} ms, {own['p99_ms']} ms, {own['count']} builds, "
                      f"{own['calls']} calls a build" for name, own in sections.items()]
    return "\n".join(lines)
