import subprocess
import sys

import deft
import pytest


@pytest.fixture
def told():
    messages = []
    deft.set_log(messages.append)
    yield messages
    deft.set_log(None)


def test_what_costs_much_is_told(told, family):
    att = deft.compile("attention logged { query_heads = 4; kv_heads = 2; head_dim = 64; kv_cache = contiguous; }")
    plan = att.plan(family)
    assert [one.kind for one in told] == ["compile", "plan"]
    assert told[0].text == "`logged` for this processor" and told[0].duration_us > 0
    assert told[1].text.startswith(f"`logged`: {plan.query_count} queries")


def test_nobody_is_told_afterwards(told, family):
    att = deft.compile("attention silent { query_heads = 4; kv_heads = 2; head_dim = 64; kv_cache = contiguous; }")
    deft.set_log(None)
    told.clear()
    att.plan(family)
    assert told == []


def test_an_exception_of_the_function_is_reported_and_goes_no_farther(family, monkeypatch):
    att = deft.compile("attention thrown { query_heads = 4; kv_heads = 2; head_dim = 64; kv_cache = contiguous; }")
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: seen.append(str(unraisable.exc_value)))

    def fail(message):
        raise RuntimeError(f"no {message.kind}")

    deft.set_log(fail)
    try:
        plan = att.plan(family)
    finally:
        deft.set_log(None)
    assert seen == ["no plan"] and plan.is_current


def test_a_program_may_end_with_its_log_on():
    program = (
        "import deft; deft.set_log(print); tree = deft.Tree(); tree.add_query(tree.add_root(9, location=0));"
        "deft.compile('attention a { query_heads = 4; kv_heads = 2; head_dim = 64; kv_cache = contiguous; }').plan(tree)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert "kind='compile'" in done.stdout and "kind='plan'" in done.stdout


def test_ranges_are_off_again():
    assert deft.set_nvtx(True) == deft.set_nvtx(False)
