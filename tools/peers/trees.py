"""Trees that all kernels are timed on: FastTree's fifteen, DeFT's few-shot ones, or a file as `deftc run --tree` takes it."""

import dataclasses
import json

# Nodes of each level, and tokens of each of its nodes.
LEVELS = {
    "F9_01": ((1, 2, 64), (8, 256, 32)),
    "F9_02": ((1, 4, 256), (8, 256, 32)),
    "F9_03": ((1, 4, 8, 256), (8, 256, 256, 32)),
    "F9_04": ((1, 256), (256, 32)),
    "F9_05": ((1, 1024), (2048, 32)),
    "F9_06": ((1, 16, 64), (1024, 256, 32)),
    "F9_07": ((1, 4, 16, 512), (1024, 256, 128, 32)),
    "F9_08": ((1, 4, 16, 64, 256, 1024), (256, 8, 256, 64, 32, 256)),
    "F9_09": ((1, 10), (4000, 400)),
    "F9_10": ((1, 2, 4, 8, 16, 32, 64, 128, 1024), (16,) * 9),
    "F9_11": ((1, 2, 4, 8, 16, 32, 64, 128, 1024), (256, 128, 64) + (16,) * 6),
    "F9_12": ((1, 8, 16, 32, 64, 128, 1024), (256, 128, 64) + (16,) * 4),
    "F9_13": ((1, 8, 16, 32, 64, 256, 1024), (256, 128, 64) + (16,) * 4),
    "F9_14": ((1, 16, 32, 64, 128, 1024), (256, 128, 64) + (16,) * 3),
    "F9_15": ((1, 16, 32, 64, 256, 1024), (256, 128, 64) + (16,) * 3),
    "FS_b20": ((1, 20), (4000, 200)),
    "FS_b30": ((1, 30), (4000, 200)),
    "FS_b50": ((1, 50), (4000, 200)),
}


@dataclasses.dataclass
class Node:
    parent: int  # -1: none
    tokens: int
    first: int = 0  # of its tokens, in the cache
    queries: list = dataclasses.field(default_factory=list)  # that see it


class Tree:
    """Nodes, parents first, whose tokens lie one after the other; and the node at which each query ends."""

    def __init__(self, nodes, ends):
        self.nodes, self.ends = nodes, ends
        self.tokens = 0
        for node in nodes:
            node.first = self.tokens
            self.tokens += node.tokens
        self.paths = [self._path(end) for end in ends]
        for query, path in enumerate(self.paths):
            for node in path:
                nodes[node].queries.append(query)

    def _path(self, end):
        path = []
        while end >= 0:
            path.append(end)
            end = self.nodes[end].parent
        return path[::-1]

    def length(self, query):
        return sum(self.nodes[node].tokens for node in self.paths[query])

    def places(self, query):
        """Where the tokens of its path are."""
        return [place for node in self.paths[query]
                for place in range(self.nodes[node].first, self.nodes[node].first + self.nodes[node].tokens)]

    def has_queries_at_leaves_alone(self):
        parents = {node.parent for node in self.nodes}
        leaves = [index for index in range(len(self.nodes)) if index not in parents]
        return self.ends == leaves


def of_levels(counts, tokens):
    nodes, before = [], []
    for count, each in zip(counts, tokens):
        level = [len(nodes) + i for i in range(count)]
        for i in range(count):
            nodes.append(Node(before[i * len(before) // count] if before else -1, each))
        before = level
    return Tree(nodes, before)


def of_file(path):
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    if document.get("format") != "deftc-tree":
        raise ValueError(f"{path}: the format is {document.get('format')!r}, not 'deftc-tree'")
    nodes = [Node(node["parent"], node["tokens"]) for node in document["nodes"]]
    if any("position" in query for query in document["queries"]):
        raise ValueError(f"{path}: queries have positions of their own; only those behind the last token are timed here")
    return Tree(nodes, [query["node"] for query in document["queries"]])
