"""Makes a torch that was built for CUDA import where CUDA's libraries are not: a stand-in takes the place of each.

usage: without_cuda.py FOLDER      the folder that torch was installed into

The registry's torch names eleven libraries of CUDA, two gigabytes of downloads. On a CPU nothing calls them, but the
loader wants the names and every symbol. The CUDA runtime and NVRTC stay real: torch registers its kernels as it is
loaded, and deft compiles with NVRTC.
"""

import re
import subprocess
import sys
from pathlib import Path

_OF_CUDA = re.compile(r"lib(cu|nccl|nvshmem)\w*\.so\.\d+")
_REAL = ("libcuda.so", "libcudart.so", "libnvrtc.so")
_SYMBOL = re.compile(r"^ +[Uw] ((?:cu|nccl|nvshmem)\w+)(?:@(\S+))?$", re.MULTILINE)


def _printed(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _needed(libraries):
    names = set(re.findall(r"\(NEEDED\).*\[(.+)\]", _printed("readelf", "--dynamic", "--wide", *libraries)))
    return sorted(name for name in names if _OF_CUDA.fullmatch(name) and not name.startswith(_REAL))


def _symbols(libraries):
    """By the version that they are asked for with, "" for none. Symbols of the driver are looked up by torch itself."""
    found = set(_SYMBOL.findall(_printed("nm", "--dynamic", "--undefined-only", *libraries)))
    of_version = {}
    for name, version in sorted(found):
        if not version.startswith(_REAL):
            of_version.setdefault(version, []).append(name)
    return of_version


def make_stand_in(libraries, folder):
    """A function that traps for each symbol, so that a call of one ends the program and is seen. Returns the names."""
    needed, of_version = _needed(libraries), _symbols(libraries)
    if not needed:
        return []
    names = sorted({name for symbols in of_version.values() for name in symbols})
    source = "".join(f"void {name}(void) {{ __builtin_trap(); }}\n" for name in names)
    stand_in, versions = folder / "libnothing_of_cuda.so", folder / "nothing_of_cuda.map"
    versions.write_text("".join(f"{version} {{ {'; '.join(of_version[version])}; }};\n" for version in of_version if version))
    link = ["cc", "-shared", "-x", "c", "-", "-o", stand_in, f"-Wl,--version-script={versions}"]
    subprocess.run(link, input=source, text=True, check=True)
    for name in needed:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(stand_in.name)
    return needed


def main():
    folder = Path(sys.argv[1]) / "torch" / "lib"
    libraries = sorted([*folder.glob("libtorch*.so"), *folder.glob("libc10*.so")])
    print("stand-ins:", *make_stand_in(libraries, folder))


if __name__ == "__main__":
    main()
