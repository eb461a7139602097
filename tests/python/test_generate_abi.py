"""What the package takes from the C headers when it is built."""

import inspect
import sys
import typing
from pathlib import Path

import deft

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "runtime/python"))
import generate_abi  # noqa: E402

HEADER = """
typedef struct deft_a {
  size_t size; ///< sizeof(deft_a)
  deft_run_settings settings;
} deft_a;

typedef struct deft_run_settings {
  /// Not 0: rows are looked at
  /// twice.
  int32_t looks_twice;
  int32_t rounds; ///< at most; 0: all
  int32_t reserved[2]; ///< 0
} deft_run_settings;
"""


def test_a_setting_of_runs_is_an_option_with_its_type_and_its_description(tmp_path):
    (tmp_path / "some.h").write_text(HEADER)
    made = {}
    declared = generate_abi.c_headers.read(tmp_path)
    exec(generate_abi.text_of(declared, generate_abi.c_headers.described(tmp_path, "deft_run_settings")), made)
    options = made["RunSettings"]
    assert typing.get_type_hints(options) == {"looks_twice": bool, "rounds": int}
    assert inspect.cleandoc(options.__doc__) == "`looks_twice`: rows are looked at twice.\n\n`rounds`: at most; 0: all"
    struct = made["deft_a"](size=1)
    struct.settings.rounds = 3
    assert len(struct.settings.reserved) == 2


def test_options_of_runs_are_the_fields_of_the_struct():
    fields = [name for name, _ in deft._abi.deft_run_settings._fields_ if name != "reserved"]
    assert list(deft._options.SETTINGS) == fields == ["check_finite"]
    for kind in (deft.RunOptions, deft.TreeRunOptions):
        assert deft._options.options_of(kind)["check_finite"] == (False, "deft_run_settings::check_finite", deft._options.Option(None).as_c)
