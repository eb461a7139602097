"""An interpreter that keeps its names from block to block, as a notebook does."""

import json
import subprocess
import sys

LOOP = """
import contextlib, importlib.util, io, json, sys, traceback
names = {"__name__": "__main__"}
for line in sys.stdin:
    asked, printed, is_right = json.loads(line), io.StringIO(), True
    if "module" in asked:
        is_right = importlib.util.find_spec(asked["module"]) is not None
    else:
        with contextlib.redirect_stdout(printed):
            try:
                exec(compile(asked["text"], asked["place"], "exec"), names)
            except BaseException:
                is_right = False
                traceback.print_exc(file=printed)
    print(json.dumps([is_right, printed.getvalue()]), flush=True)
"""


class Notebook:
    """Begun with the first block; a context, which ends it."""

    def __init__(self, folder, environment):
        self.folder, self.environment, self.process = folder, environment, None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.stdin.close()
            self.process.wait(timeout=60)
            self.process.stdout.close()

    def ask(self, **question):
        if self.process is None:
            self.process = subprocess.Popen([sys.executable, "-c", LOOP], cwd=self.folder, env=self.environment, text=True,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        return json.loads(answer) if answer else (False, "the interpreter ended")

    def has(self, module):
        return self.ask(module=module)[0]

    def run(self, text, place):
        """(whether it ran to its end, what it printed)"""
        return self.ask(text=text, place=place)
