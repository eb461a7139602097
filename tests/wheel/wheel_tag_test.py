"""The tag of a wheel follows what its binaries need: made-up answers of readelf, and this machine's own programs."""

import base64
import hashlib
import platform
import shutil
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "lib"))
import wheel_tag  # noqa: E402


def dump(needed=("libc.so.6",), versions=("GLIBC_2.2.5",), soname=None):
    """What readelf prints of a binary, as far as it is read."""
    lines = [f" 0x01 (NEEDED)             Shared library: [{name}]" for name in needed]
    if soname:
        lines.append(f" 0x0e (SONAME)             Library soname: [{soname}]")
    lines += [f"  0x0010:   Name: {name}  Flags: none  Version: 3" for name in versions]
    return "\n".join(lines)


class OldestGlibcTest(unittest.TestCase):
    def test_the_newest_symbol_of_any_binary_decides(self):
        dumps = [dump(versions=("GLIBC_2.2.5", "GLIBC_2.34", "GLIBC_2.4")), dump(versions=("GLIBC_2.29",))]
        self.assertEqual(wheel_tag.oldest_glibc(dumps), (2, 34))

    def test_there_is_no_tag_before_2_17(self):
        self.assertEqual(wheel_tag.oldest_glibc([dump(versions=("GLIBC_2.2.5",))]), (2, 17))

    def test_packed_relocations_need_2_36(self):
        self.assertEqual(wheel_tag.oldest_glibc([dump(versions=("GLIBC_2.17", "GLIBC_ABI_DT_RELR"))]), (2, 36))

    def test_a_library_from_elsewhere_has_no_tag(self):
        self.assertIsNone(wheel_tag.oldest_glibc([dump(needed=("libc.so.6", "libLLVM.so.22.1"))]))
        self.assertIsNone(wheel_tag.oldest_glibc([dump(needed=("libc.musl-x86_64.so.1",))]))

    def test_a_library_of_the_wheel_is_no_other(self):
        dumps = [dump(needed=("libc.so.6", "libdeft.so.0.2")), dump(soname="libdeft.so.0.2")]
        self.assertEqual(wheel_tag.oldest_glibc(dumps), (2, 17))

    def test_private_symbols_have_no_tag(self):
        self.assertIsNone(wheel_tag.oldest_glibc([dump(versions=("GLIBC_2.34", "GLIBC_PRIVATE"))]))


class WheelTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def wheel(self, contents, tag="linux_x86_64"):
        path = self.folder / f"deftc-0.2.0-py3-none-{tag}.whl"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in contents.items():
                archive.writestr(zipfile.ZipInfo(name, (2026, 1, 2, 3, 4, 6)), content)
            archive.writestr("deftc-0.2.0.dist-info/WHEEL", f"Wheel-Version: 1.0\nTag: py3-none-{tag}\n")
            archive.writestr("deftc-0.2.0.dist-info/RECORD", "deft/__init__.py,sha256=x,1\ndeftc-0.2.0.dist-info/WHEEL,sha256=y,2\ndeftc-0.2.0.dist-info/RECORD,,\n")
        return path

    def test_the_new_name_stands_in_the_wheel_and_its_record(self):
        old = self.wheel({"deft/__init__.py": "1"})
        new = wheel_tag.tagged(old, "manylinux_2_34_x86_64")
        self.assertEqual(new.name, "deftc-0.2.0-py3-none-manylinux_2_34_x86_64.whl")
        self.assertFalse(old.exists())
        with zipfile.ZipFile(new) as archive:
            said = archive.read("deftc-0.2.0.dist-info/WHEEL")
            self.assertEqual(said, b"Wheel-Version: 1.0\nTag: py3-none-manylinux_2_34_x86_64\n")
            digest = base64.urlsafe_b64encode(hashlib.sha256(said).digest()).rstrip(b"=").decode()
            self.assertIn(f"WHEEL,sha256={digest},{len(said)}\n", archive.read("deftc-0.2.0.dist-info/RECORD").decode())
            self.assertEqual(archive.getinfo("deft/__init__.py").date_time, (2026, 1, 2, 3, 4, 6))
            self.assertEqual(archive.read("deft/__init__.py"), b"1")

    def test_a_wheel_of_another_tag_stays(self):
        path = self.wheel({}, "macosx_14_0_arm64")
        self.assertEqual(wheel_tag.with_oldest_tag(path), path)

    @unittest.skipUnless(shutil.which("readelf") and platform.libc_ver()[0] == "glibc", "needs readelf and a program of glibc")
    def test_a_program_of_this_machine(self):
        path = wheel_tag.with_oldest_tag(self.wheel({"deft/bin/true": Path(shutil.which("true")).resolve().read_bytes()}))
        _, major, minor, _, _ = path.stem.split("-")[-1].split("_", 4)
        self.assertEqual(major, "2")
        self.assertLessEqual(int(minor), int(platform.libc_ver()[1].split(".")[1]))


if __name__ == "__main__":
    unittest.main()
