import deft
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    """No test reads what the machine's user has tuned, nor leaves anything there."""
    monkeypatch.setenv("DEFT_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@pytest.fixture
def family():
    """A prompt of 100 tokens and two branches of 5 and 9, one after the other in the cache, a query at each end."""
    tree = deft.Tree()
    prompt = tree.add_root(100, location=0)
    for tokens, location in ((5, 100), (9, 105)):
        tree.add_query(tree.add_child(prompt, tokens, location=location))
    return tree
