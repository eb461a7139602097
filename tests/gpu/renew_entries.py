#!/usr/bin/env python3
"""Are tuned configs still of the kernels that run? Where device code has changed and its machine code has not, entries
are as good as new: compiles the kernels of every entry with the device code of a commit and of this tree, and compares
what the GPU executes, byte by byte, with registers and memory. A file of configs (tuner/configs), or of sparse layers
(tuner/sparse/configs).

    tests/gpu/renew_entries.py --deftc DEFTC --before COMMIT [--before-deftc DEFTC] [--timed RECORD.json] [--write] CONFIGS.json

Prints what differs, and with --write gives the entries, all of whose kernels are the same, the hash of today's device
code. Entries whose kernels differ stay stale, and so do entries that were stale before. --before-deftc is for a commit
whose generated files are others, too. Needs NVRTC (CUDA_HOME, /usr/local/cuda) and no GPU.

Where machine code differs and takes the same time, a config that won still wins: --timed takes a record of
template_times.py. If each of its rows is within 2 % of the time before, and the mean within half a percent, the other
entries are renewed, too, and say so in their notes.
"""

import argparse
import ctypes
import hashlib
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HASH_DIGITS = 16  # as config_cache::kernelHash has them
INCLUDE = re.compile(r'#include "([^"]*)"')
# As runtime/nvrtc passes them, but for the report.
OPTIONS = ("--std=c++20", "--no-source-include", "--diag-suppress=177", "--frandom-seed=deft")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deftc", required=True)
    parser.add_argument("--before", required=True, metavar="COMMIT")
    parser.add_argument("--before-deftc", metavar="DEFTC")
    parser.add_argument("--timed", type=pathlib.Path, metavar="RECORD.json")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("configs", type=pathlib.Path, metavar="CONFIGS.json")
    return parser.parse_args()


def headers_of_tree():
    folder = ROOT / "templates"
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
            for path in sorted(folder.rglob("*")) if path.suffix in (".cuh", ".h")}


def headers_of_commit(commit):
    git = ["git", "-C", str(ROOT)]
    names = subprocess.run([*git, "ls-tree", "-r", "--name-only", commit, "templates"], check=True, capture_output=True,
                           text=True).stdout.split()
    return {name.removeprefix("templates/"):
            subprocess.run([*git, "show", f"{commit}:{name}"], check=True, capture_output=True, text=True).stdout
            for name in names if name.endswith((".cuh", ".h"))}


DENSE, LATENT, SPARSE = r"\w+(?<!_latent)", r"\w+_latent", "sm80"  # families whose kernels have a hash together


def kernel_hash(headers, family=DENSE):
    """config_cache::kernelHash of a GPU: the code of all headers that these families' kernels or a merge reach."""
    reached, pending = set(), [name for name in headers if re.fullmatch(rf"deft/(attend_{family}|merge)\.cuh", name)]
    while pending:
        name = pending.pop()
        if name in headers and name not in reached:
            reached.add(name)
            pending += INCLUDE.findall(headers[name])
    digest = hashlib.sha256()
    for name in sorted(reached):
        code = re.sub(r"\s", "", re.sub(r"//[^\n]*", "", headers[name]))
        digest.update(f"{name} {len(code.encode())}\n{code}".encode())
    return digest.hexdigest()[:HASH_DIGITS]


def spec_of(signature):
    """The spec of a plain attention's signature; None of others, whose hooks it does not say."""
    found = re.fullmatch(r"q(\d+)-kv(\d+)-d(\d+)(?:k(\d+))?-(f16|bf16)-(?:p(\d+)nhd|contiguous)-plain", signature)
    if not found:
        return None
    heads, kv_heads, dim, latent, dtype, page = found.groups()
    pages = f"page_size = {page}"
    if latent:
        shape, cache = "scale = 1 / sqrt(192); ", f"latent(dim = {latent}, rope = {int(dim) - int(latent)}, {pages})"
    else:
        shape, cache = f"kv_heads = {kv_heads}; head_dim = {dim}; ", f"paged({pages})" if page else "contiguous"
    return f"attention a {{ query_heads = {heads}; {shape}dtype = {dtype}; kv_cache = {cache}; }}\n"


class Compiler:
    """NVRTC with one set of headers."""

    def __init__(self, headers):
        home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
        names = [f"{home}/lib64/libnvrtc.so.13", f"{home}/lib64/libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc.so"]
        for name in names:
            try:
                self.nvrtc = ctypes.CDLL(name)
                break
            except OSError:
                continue
        else:
            sys.exit("no NVRTC; set CUDA_HOME to the toolkit's folder")
        texts = [text.encode() for text in headers.values()]
        self.headers = (ctypes.c_char_p * len(texts))(*texts)
        self.names = (ctypes.c_char_p * len(texts))(*[name.encode() for name in headers])

    def sections(self, source, arch):
        """What of a cubin decides what runs: code, constants, and registers and memory (.nv.info)."""
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        self.nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", len(self.headers), self.headers,
                                      self.names)
        options = [f"--gpu-architecture={arch}".encode(), *(option.encode() for option in OPTIONS)]
        failed = self.nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        if failed:
            self.nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            self.nvrtc.nvrtcGetProgramLog(program, log)
            sys.exit(log.value.decode())
        self.nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
        cubin = ctypes.create_string_buffer(size.value)
        self.nvrtc.nvrtcGetCUBIN(program, cubin)
        self.nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
        return what_runs(cubin.raw)


def what_runs(elf):
    """Sections of a 64-bit ELF file by name, those that hold what runs; names of symbols are not among it."""
    begin, = struct.unpack_from("<Q", elf, 0x28)
    count, of_names = struct.unpack_from("<HH", elf, 0x3C)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, begin + 64 * i) for i in range(count)]
    names = elf[headers[of_names][4]:headers[of_names][4] + headers[of_names][5]]
    found = {}
    for name_at, kind, flags, _, offset, size, _, info, _, _ in headers:
        name = names[name_at:names.index(b"\0", name_at)].decode()
        # .nv.constant4 has the address of every constexpr member of every class, which no code reads: one more of
        # them, or one by another name, runs nothing else.
        if name.startswith((".text", ".nv.constant", ".nv.shared")) and name != ".nv.constant4":
            # The upper bits of a code section's info are its registers.
            found[name] = (size, info >> 24, flags, b"" if kind == 8 else elf[offset:offset + size])
    return found


def is_sparse(entry):
    return "budget" in entry


def emitted(deftc, entry, phase, folder):
    """The generated file of a kernel of the entry."""
    spec, command = spec_of(entry["signature"]), [deftc, "emit", folder / "a.deft", "--as", "cuda", "--arch", "sm_90a"]
    if is_sparse(entry):
        spec = spec.replace(" }\n", f" select {{ budget = {entry['budget']}; }} }}\n")
    else:
        (folder / "config.json").write_text(json.dumps(entry["config"]), encoding="utf-8")
        command += ["--config", folder / "config.json"]
    (folder / "a.deft").write_text(spec, encoding="utf-8")
    text = subprocess.run([*command, "--phase", phase], check=True, capture_output=True, text=True).stdout
    return with_tile(text, entry) if phase == "sparse" else text


def with_tile(text, entry):
    """A generated file of sparse layers with the entry's tile in place of another, whose shared memory it states."""
    for name, key in (("kTileKv", "tile_kv"), ("kStages", "stages"), ("kWarps", "warps")):
        text, found = re.subn(rf"(static constexpr int {name} =) \d+;", rf"\g<1> {entry[key]};", text)
        assert found == 1, name
    return re.sub(r"static_assert\(deft::\w+::smemBytes.*;\n", "", text)


def phases_of(entry):
    return ["sparse", "merge"] if is_sparse(entry) else [phase["name"] for phase in entry["config"]["phases"]] + ["merge"]


def described(entry):
    if is_sparse(entry):
        return f"budget {entry['budget']}, tiles of {entry['tile_kv']} by {entry['warps']} warps"
    return f"{entry['config']['phases'][0]['tile_q']} rows, order {entry['config'].get('order', 'root')}"


def hash_of(entry, file):
    """Of a file of version 1 each entry has its own; later ones have its place in a list."""
    named = entry["provenance"]["kernel_hash"]
    return named if isinstance(named, str) else file["kernel_hashes"][named]


MOST_OF_A_ROW, MOST_IN_THE_MEAN = 0.02, 0.005


def takes_the_same_time(record):
    ratios = [row["ratio"] for row in record["rows"]]
    return bool(ratios) and abs(record["mean_ratio"] - 1) <= MOST_IN_THE_MEAN and all(abs(r - 1) <= MOST_OF_A_ROW for r in ratios)


def noted(entry, record_name, date):
    """An entry whose kernels are others, of the same time."""
    note = f"renewed on {date} for other machine code of the same time, {record_name}"
    entry["provenance"]["note"] = "; ".join(filter(None, [entry["provenance"]["note"], note]))
    return entry


def renewed(file, new_hashes, entries):
    """The file's text where these entries have the new hash of their old one; hashes without an entry are gone."""
    hashes = [hash_of(entry, file) for entry in file["entries"]]
    hashes = [new_hashes[named] if any(entry is one for one in entries) else named for entry, named in zip(file["entries"], hashes)]
    listed = list(dict.fromkeys(hashes))
    for entry, named in zip(file["entries"], hashes):
        entry["provenance"]["kernel_hash"] = listed.index(named)
    return json.dumps({**file, "kernel_hashes": listed, "version": 2}, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def main():
    arguments = parse_arguments()
    before, now = headers_of_commit(arguments.before), headers_of_tree()
    file = json.loads(arguments.configs.read_text(encoding="utf-8"))
    every = file["entries"]
    families = (SPARSE,) if every and is_sparse(every[0]) else (DENSE, LATENT)
    new_hashes = {kernel_hash(before, family): kernel_hash(now, family) for family in families}
    known = [entry for entry in every if hash_of(entry, file) in new_hashes]
    entries = [entry for entry in known if new_hashes[hash_of(entry, file)] != hash_of(entry, file)]
    print(f"{len(known)} of {len(every)} entries are of {arguments.before}'s device code, {len(entries)} of them of code that has changed: "
          f"{', '.join(f'{old} is {new} today' for old, new in new_hashes.items())}")
    if not entries:
        return 0 if known else 1
    old_compiler, new_compiler = Compiler(before), Compiler(now)
    same = {}  # by the text of a generated file
    verdicts = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        texts = {}
        for entry in entries:
            is_same = spec_of(entry["signature"]) is not None
            for phase in phases_of(entry) if is_same else []:
                key = (entry["signature"], phase, described(entry), json.dumps(entry.get("config", {}).get("phases")))
                if key not in texts:
                    texts[key] = tuple(emitted(deftc, entry, phase, folder)
                                       for deftc in (arguments.before_deftc or arguments.deftc, arguments.deftc))
                if texts[key] not in same:
                    old, new = texts[key]
                    same[texts[key]] = old_compiler.sections(old, "sm_90a") == new_compiler.sections(new, "sm_90a")
                    print(f"{entry['signature']} {phase}, {described(entry)}: "
                          f"{'same' if same[texts[key]] else 'DIFFERS'}", flush=True)
                is_same = is_same and same[texts[key]]
            verdicts.append(is_same)
    print(f"{sum(same.values())} of {len(same)} kernels are the same; {sum(verdicts)} entries are as good as new, "
          f"{len(verdicts) - sum(verdicts)} are to be tuned again")
    if arguments.write:
        proven = [entry for entry, is_same in zip(entries, verdicts) if is_same]
        if arguments.timed and takes_the_same_time(record := json.loads(arguments.timed.read_text(encoding="utf-8"))):
            proven += [noted(entry, arguments.timed.name, record["date"]) for entry, is_same in zip(entries, verdicts) if not is_same]
        arguments.configs.write_text(renewed(file, new_hashes, proven), encoding="utf-8")
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
