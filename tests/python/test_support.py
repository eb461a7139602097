"""The support table names functions that exist, and the plug-ins' declarations have the form that they read."""

import ctypes
import operator
import re
from pathlib import Path

import deft
import pytest

TABLE = deft.support()


def of(rows, key):
    return [row[key] for row in rows if row[key]]


@pytest.mark.parametrize("name", of(TABLE["interfaces"], "c"))
def test_functions_of_c_are_in_the_library(name):
    assert getattr(ctypes.CDLL(deft.get_library()), name)


@pytest.mark.parametrize("name", of(TABLE["interfaces"], "python"))
def test_names_of_python_are_in_the_package(name):
    assert operator.attrgetter(name)(deft)


def test_names_of_cpp_are_in_the_headers():
    folder = Path(__file__).resolve().parents[2] / "runtime/include/deft"  # a wheel has the headers of C alone
    headers = "".join(path.read_text() for path in folder.glob("*.hpp"))
    for name in of(TABLE["interfaces"], "cpp"):
        assert re.search(rf"class {name}\b|\b{name}\(", headers), name


def test_cells_of_gpus_name_a_family_or_an_error():
    for row in TABLE["attention"]:
        for arch, cell in row["gpus"].items():
            assert cell["by"] if cell["ok"] else cell["why"], (row["feature"], arch)


@pytest.mark.parametrize("engine", TABLE["engines"].values())
def test_engines_declare_releases_and_features(engine):
    assert re.fullmatch(r"[\d.]+ [\d.]+ [\d.]+", " ".join((engine["first"], engine["tested_with"], engine["last"])))
    features = [row["feature"] for row in engine["features"]]
    assert len(features) == len(set(features))
