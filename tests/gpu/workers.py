"""A part of a program that runs in a process of its own, so that each engine has the whole GPU."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path


def result_of(program, arguments, options, what):
    """What `program` wrote to the file of its --out, and what it printed; the result is None, and the failure printed, if it failed.
    `options` has `timeout` and `tail`; `what` names the part."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [sys.executable, program, *arguments, "--out", file.name]
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=options.timeout)
            code, said = done.returncode, done.stdout
        except subprocess.TimeoutExpired as late:
            code, said = "a time-out", (late.stdout or b"").decode(errors="replace")
        if code != 0:
            print(f"{what} failed with {code}:\n" + said[-options.tail:], flush=True)
            return None, said
        return json.loads(Path(file.name).read_text()), said
