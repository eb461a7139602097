import doctest
import re
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "transformers.md"


@pytest.mark.skipif(not DOCUMENT.exists(), reason="the tests lie without the repository")
def test_the_examples_of_the_document_do_what_it_says():
    text = DOCUMENT.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 6
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, DOCUMENT.name, str(DOCUMENT), 0)
    said = []
    failed, tried = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert tried > 20
    assert not failed, "".join(said)
