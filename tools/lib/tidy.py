"""Runs clang-tidy on what changed, or on everything; `tools/dev lint` calls it from the repository root.

usage: tidy.py [--all | --since COMMIT] [--minutes N]
  --all        every source, whatever changed
  --since      what differs from this commit; nothing where it is not there, as in a copy of the last commit alone
  --minutes N  begins no file after N minutes; those left are named, and are no error

What changed is what the work tree has beside a commit, the base: where this branch left its upstream, else the last
commit before this one, and a tree that has neither is compared with nothing, so everything counts. A header is read
through a source that includes it. Reads the command lines of the dev build.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDERS = ("compiler", "runtime", "specs", "tools", "tuner")
UPSTREAMS = ("origin/HEAD", "origin/main", "main")
COMMANDS = Path("build/dev/compile_commands.json")
# clang cannot read gcc's precompiled headers; what they hold is included anyway.
PRECOMPILED = re.compile(r" (-Winvalid-pch|-include [^ ]*cmake_pch\.hxx)")
# What deft_compile_together makes of several sources (tools/cmake/DeftTargets.cmake).
TOGETHER = "/together/"
MEMBER = re.compile(r'^#include "(.+\.cpp)"$', re.MULTILINE)


def git(*arguments, may_fail=False):
    """The lines that git prints; none where it fails and may."""
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0 and not may_fail:
        sys.exit(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.splitlines() if done.returncode == 0 else []


def base():
    """(commit, how it was found), or (None, why there is none)."""
    head = git("rev-parse", "--verify", "--quiet", "HEAD^{commit}", may_fail=True)
    if not head:
        return None, "there is no commit"
    for upstream in UPSTREAMS:
        fork = git("merge-base", "HEAD", upstream, may_fail=True)
        if fork and fork != head:
            return fork[0], f"where this branch left {upstream}"
    parent = git("rev-parse", "--verify", "--quiet", "HEAD^", may_fail=True)
    if parent:
        return parent[0], "the commit before the last"
    return None, "there is no commit before the last"


def is_linted(path):
    return path.startswith(tuple(f"{folder}/" for folder in FOLDERS))


def every_source():
    return [path for path in git("ls-files", "--", "*.cpp") if is_linted(path)]


def source_of(header):
    """A source through which clang-tidy sees a header: the one named like it, else one that includes it, or None."""
    twin = str(Path(header).with_suffix(".cpp"))
    if Path(twin).exists():
        return twin
    users = git("grep", "-l", "--untracked", "-F", f'#include "{header}"', "--", "*.cpp", may_fail=True)
    return next((user for user in users if is_linted(user)), None)


def changed_sources(commit):
    """Sources that are not as in a commit, and one for each such header, in order of their names."""
    changed = git("diff", "--name-only", "--diff-filter=d", commit)
    changed += git("ls-files", "--others", "--exclude-standard")
    found = {path for path in changed if is_linted(path) and path.endswith(".cpp")}
    headers = [path for path in changed if is_linted(path) and path.endswith(".h")]
    return sorted(found | {source for header in headers if (source := source_of(header))})


def apart(entry):
    """The command lines of the sources that one of the build's compiles: its own, or one for each member of a group."""
    if TOGETHER not in entry["file"]:
        return [entry]
    members = [os.path.abspath(member) for member in MEMBER.findall(Path(entry["file"]).read_text(encoding="utf-8"))]
    return [{**entry, "file": member, "command": entry["command"].replace(entry["file"], member)} for member in members]


def write_commands(folder):
    """The build's command lines as clang reads them, in a folder; returns the sources that the build has."""
    built = json.loads(PRECOMPILED.sub("", COMMANDS.read_text(encoding="utf-8")))
    entries = [one for entry in built for one in apart(entry)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "compile_commands.json").write_text(json.dumps(entries, indent=1), encoding="utf-8")
    return {os.path.relpath(entry["file"]) for entry in entries}


def check(sources, check_one, minutes, jobs, seconds=time.monotonic):
    """Checks sources, several at a time; (found something, not reached). None is begun when `minutes` are over."""
    end = seconds() + 60 * minutes if minutes else None
    failed, left = [], []

    def run(source):
        if end and seconds() > end:
            left.append(source)
        elif report := check_one(source):
            failed.append(source)
            print(report, flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(run, sources))
    return sorted(failed), sorted(left)


def tidy(folder, source):
    """What clang-tidy has to say of a source; empty where all is well."""
    done = subprocess.run(
        ["clang-tidy-22", "--quiet", "--extra-arg=-Wno-unknown-warning-option", "-p", str(folder), source],
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if done.returncode == 0 else f"{done.stdout}{done.stderr}".strip() or f"{source}: exit code {done.returncode}"


def main():
    arguments = argparse.ArgumentParser()
    which = arguments.add_mutually_exclusive_group()
    which.add_argument("--all", action="store_true")
    which.add_argument("--since", metavar="COMMIT")
    arguments.add_argument("--minutes", type=float)
    options = arguments.parse_args()

    if options.since:
        found = git("rev-parse", "--verify", "--quiet", f"{options.since}^{{commit}}", may_fail=True)
        if not found:
            print(f"clang-tidy: there is no commit {options.since} here, so nothing is compared and nothing checked")
            return 0
        commit, how = found[0], options.since
    else:
        commit, how = (None, "as asked for") if options.all else base()
    sources = changed_sources(commit) if commit else every_source()
    folder = Path("build/tidy")
    built = write_commands(folder)
    unbuilt = [source for source in sources if source not in built]
    sources = [source for source in sources if source in built]
    compared = f"that differ from {commit[:10]}, {how}" if commit else f"of all, {how}"
    print(f"clang-tidy: {len(sources)} sources {compared}", flush=True)
    if unbuilt:
        print(f"clang-tidy: not in the dev build, so not checked: {' '.join(unbuilt)}")
    failed, left = check(sources, lambda source: tidy(folder, source), options.minutes, os.cpu_count() or 1)
    if left:
        print(f"clang-tidy: {len(left)} not reached within {options.minutes:g} minutes: {' '.join(left)}")
    if failed:
        print(f"clang-tidy: findings in {len(failed)}: {' '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
