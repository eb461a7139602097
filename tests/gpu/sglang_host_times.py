"""How long SGLang's host makes the metadata of attention, in the process that runs the model: a plug-in of SGLang that notes it, and
what drives the engine meanwhile. With SGLang 0.5.17 and later."""

import asyncio
import json
import os
import sys
import time
from pathlib import Path

from host_times import length_of, prompts_of, summary

FILE = "SGLANG_HOST_TIMES"  # the variable that names the file to which calls are noted
FORWARD = "forward"  # a call's kinds
PLAN = "plan"


def install(folder):
    """Makes this module a plug-in for engines that start after this. Returns the file of the calls."""
    about = Path(folder) / "host_times-0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: host-times\nVersion: 0\n")
    (about / "entry_points.txt").write_text("[sglang.srt.plugins]\nhost_times = sglang_host_times:register\n")
    calls = Path(folder) / "calls.jsonl"
    own = [str(folder), str(Path(__file__).parent)]
    os.environ[FILE] = str(calls)
    os.environ["PYTHONPATH"] = os.pathsep.join([*own, *filter(None, [os.environ.get("PYTHONPATH")])])
    sys.path[:0] = own
    return calls


def register():
    """SGLang calls it in each of its processes."""
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    HookRegistry.register("sglang.srt.model_executor.model_runner.ModelRunner.init_attention_backends", follow, HookType.AFTER)


def follow(result, runner, *_, **__):
    """Behind the making of a runner's backend."""
    with open(os.environ[FILE], "a", buffering=1) as file:
        watch = Watch(os.dup(file.fileno()))
    backend = runner.attn_backend
    backend.init_forward_metadata = watch.timed(PLAN, backend.init_forward_metadata)
    backend.init_forward_metadata_out_graph = watch.timed(PLAN, backend.init_forward_metadata_out_graph)
    runner.forward = watch.timed(FORWARD, runner.forward)
    reading = sys.modules.get("deft.sglang.foreseen")
    if reading:
        reading.Reading.wait = watch.waiting(reading.Reading.wait)
    return result


class Watch:
    """Notes each call, outside of the time that it takes."""

    def __init__(self, file):
        self._file, self._within, self._waited = file, 0, 0.0

    def timed(self, kind, function):
        def call(batch, *arguments, **more):
            if kind == PLAN and self._within:  # SGLang's eager call may be made of the other one
                return function(batch, *arguments, **more)
            self._within += kind == PLAN
            self._waited = 0.0 if kind == PLAN else self._waited
            began = time.perf_counter()
            try:
                return function(batch, *arguments, **more)
            finally:
                taken = time.perf_counter() - began
                self._within -= kind == PLAN
                if not more.get("in_capture"):
                    self._note(kind, batch, began, taken)

        return call

    def waiting(self, wait):
        def waits(*arguments):
            began = time.perf_counter()
            try:
                return wait(*arguments)
            finally:
                self._waited += time.perf_counter() - began

        return waits

    def _note(self, kind, batch, began, taken):
        mode = getattr(batch, "forward_mode", None)
        decodes = bool(mode is not None and mode.is_decode())
        count = int(batch.batch_size) - int(getattr(batch, "num_padding", 0) or 0)
        note = {"kind": kind, "decodes": decodes, "requests": count, "at": began, "s": taken, "waited_s": self._waited if kind == PLAN else 0.0}
        os.write(self._file, (json.dumps(note) + "\n").encode())


def drive(engine, calls, prompts, count):
    """Keeps `count` requests running until no prompt is left, and sums up what was noted meanwhile."""

    async def one(number, slots):
        async with slots:
            params = {"temperature": 0.0, "max_new_tokens": length_of(number, count), "ignore_eos": True}
            await engine.async_generate(input_ids=prompts[number], sampling_params=params)

    async def all_of_them():
        slots = asyncio.Semaphore(count)
        await asyncio.gather(*(one(number, slots) for number in range(len(prompts))))

    engine.generate(input_ids=prompts[0], sampling_params={"max_new_tokens": 2, "ignore_eos": True})  # fills the prefix cache
    before = calls.stat().st_size
    engine.loop.run_until_complete(all_of_them())
    with calls.open() as file:
        file.seek(before)
        return summed(list(map(json.loads, file)), count)


def summed(notes, count):
    """Of the steps while `count` requests run, or nearly: plans of decoding alone, of decoding behind a step of prompts, of prompts;
    forwards of decoding, and the time from one to the next."""
    kinds, steady, first, prompts, waits, forwards, steps, last = None, [], [], [], [], [], [], None
    for note in notes:
        was, kinds = kinds, (note["decodes"], note["requests"]) if note["kind"] == PLAN else kinds
        if note["requests"] < count // 2 and note["decodes"]:
            continue
        if note["kind"] == FORWARD:
            forwards += [note["s"]] if note["decodes"] else []
            steps += [note["at"] - last] if note["decodes"] and last is not None else []
            last = note["at"] if note["decodes"] else None
        elif not note["decodes"]:
            prompts.append(note["s"])
        else:
            (steady if was == kinds else first).append(note["s"] - note["waited_s"])
            waits.append(note["waited_s"])
    return {"build": summary(steady), "build_joins": summary(first + prompts), "waits": summary(waits), "forward": summary(forwards), "step": summary(steps)}


def host_of(engine, calls, counts, tokens):
    return {str(count): drive(engine, calls, prompts_of(count, tokens), count) for count in counts}
