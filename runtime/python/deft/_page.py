"""Plans as pages for a browser."""

from __future__ import annotations

import os
from html import escape

from ._arguments import path_of


class PlanPage:
    """A page that shows one plan or two: the tree and its readers, items, workers over time by the price model, and the bytes
    of each node. `show` makes it. In a notebook it shows itself in a frame; `save` writes a file for a browser. It needs no
    network."""

    def __init__(self, html: str, height: int) -> None:
        self.html = html
        self.height = height  # of the frame, in pixels

    def save(self, path: str | os.PathLike[str]) -> None:
        with open(path_of("path", path), "w", encoding="utf-8") as file:
            file.write(self.html)

    def __repr__(self) -> str:
        return f"<deft.PlanPage: {len(self.html)} characters of HTML; save(path) writes them>"

    def _repr_html_(self) -> str:
        # A frame of its own: neither its styles nor its scripts meet the notebook's.
        frame = 'style="width: 100%; border: 0" sandbox="allow-scripts"'
        return f'<iframe {frame} height="{self.height}" srcdoc="{escape(self.html)}"></iframe>'
