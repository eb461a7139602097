"""Has auditwheel judge a wheel's tag: that its name has the oldest manylinux tag which its binaries allow.

usage: check_tag.py WHEEL      by a Python that has auditwheel; exit code 1 where the two differ
"""

import re
import subprocess
import sys
from pathlib import Path


def judged(said):
    """The tag in what `auditwheel show` says, which breaks lines where they are long; None where there is none."""
    found = re.search(r'following platform tag: "([^"]+)"', " ".join(said.split()))
    return found and found[1]


def main():
    wheel = Path(sys.argv[1])
    tag = wheel.stem.split("-")[-1]
    ran = subprocess.run([sys.executable, "-m", "auditwheel", "show", wheel], capture_output=True, text=True)
    judgement = judged(ran.stdout)
    print(f"wheel: tagged {tag}, auditwheel says {judgement}")
    if judgement != tag:
        print(ran.stdout + ran.stderr)
    return 0 if judgement == tag else 1


if __name__ == "__main__":
    sys.exit(main())
