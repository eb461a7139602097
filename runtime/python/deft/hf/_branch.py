"""A path of the tree, represented by its last node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._errors import UsageError

if TYPE_CHECKING:
    import torch

    from .._sequence_tree import SequenceTree


class Branch:
    """A prompt, the tokens decoded by a fork of it, or a guessed token: a node of the decoder's tree and the path to it. A
    TreeDecoder makes it."""

    __slots__ = ("sequences", "parent", "children", "node", "own", "is_alive", "logits", "hidden")

    def __init__(self, sequences: SequenceTree, node: int, parent: Branch | None = None) -> None:
        self.sequences = sequences  # the tree that the node is of
        self.parent = parent
        self.children: list[Branch] = []
        self.node = node
        self.own: list[int] = []  # tokens of its node that are in the cache
        self.is_alive = True
        #: [vocabulary]: what comes behind its last token. A fork begins with that of its parent.
        self.logits: torch.Tensor | None = None
        #: [hidden size], of a decoder that keeps them: what the logits were made of.
        self.hidden: torch.Tensor | None = None
        if parent is not None:
            parent.children.append(self)
            self.logits, self.hidden = parent.logits, parent.hidden

    @property
    def tokens(self) -> list[int]:
        """The tokens of the whole path, including the prompt's."""
        parts = [branch.own for branch in self.path()]
        return [token for part in parts for token in part]

    @property
    def length(self) -> int:
        return sum(len(branch.own) for branch in self.path())

    def path(self) -> list[Branch]:
        """Lists the branches from the root to this one."""
        found: list[Branch] = []
        branch: Branch | None = self
        while branch is not None:
            found.append(branch)
            branch = branch.parent
        return found[::-1]

    def family(self) -> list[Branch]:
        """Lists this branch and all branches below it."""
        found = [self]
        for branch in found:
            found += branch.children
        return found

    def check(self, sequences: SequenceTree) -> None:
        """Raises an error unless the branch is alive and belongs to this tree: other trees use the same node numbers."""
        if self.sequences is not sequences:
            raise UsageError("the branch is another decoder's")
        if not self.is_alive:
            raise UsageError("the branch was pruned")

    def end(self) -> None:
        """Marks this branch and all below it as removed from the tree."""
        self.is_alive = False
        self.logits = self.hidden = None
        for child in self.children:
            child.end()
        self.children = []

    def __repr__(self) -> str:
        state = f"node {self.node}, {self.length} tokens" if self.is_alive else "pruned"
        return f"<deft.hf.Branch: {state}>"
