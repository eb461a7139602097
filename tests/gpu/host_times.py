"""How long vLLM's host makes the metadata of attention: in steps of decoding, and in steps in which requests join."""

import statistics
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


class Watch:
    """Times of the builders of metadata, in the engine's process."""

    def __init__(self, decoding):
        """`decoding`: queries of a request that decodes."""
        self._decoding, self._is_on = decoding, False
        self.clear()

    def clear(self):
        self.steady, self.joins = [], []

    def switch(self, is_on):
        self._is_on = is_on

    def wrap(self, builder):
        build = builder.build

        def timed(common_prefix_len, common_attn_metadata, *arguments, **more):
            began = time.perf_counter()
            made = build(common_prefix_len, common_attn_metadata, *arguments, **more)
            taken = time.perf_counter() - began
            if self._is_on:
                joins = common_attn_metadata.max_query_len > self._decoding
                (self.joins if joins else self.steady).append(taken)
            return made

        builder.build = timed

    def wrap_all(self, worker):
        for group in [group for groups in worker.model_runner.attn_groups for group in groups]:
            self.wrap(group.get_metadata_builder())


def summary(times):
    """In milliseconds."""
    if not times:
        return {"count": 0}
    ordered = sorted(times)
    late = ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
    return {"count": len(times), "median_ms": round(1e3 * statistics.median(ordered), 4), "p99_ms": round(1e3 * late, 4)}


def drive(engine, watch, prompts, count, params_of):
    """Keeps `count` requests running until no prompt is left. `params_of`: a number of tokens."""
    name, steps = f"host{count}", []

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
    return {"build": summary(watch.steady), "build_joins": summary(watch.joins), "step": summary(steps)}


def text_of(host):
    lines = []
    for count, seen in host.items():
        for name, what in (("build", "steps of decoding"), ("build_joins", "steps with new requests"), ("step", "whole steps")):
            if seen[name]["count"]:
                lines.append(f"{count} requests: {what}: median {seen[name]['median_ms']} ms, 99th percentile "
                             f"{seen[name]['p99_ms']} ms of {seen[name]['count']}")
    return "\n".join(lines)
