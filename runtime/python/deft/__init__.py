"""Attention over trees of shared prefixes: each token that several queries share is read once.

    import deft
    att = deft.compile(path="llama3_8b")
    tree = deft.Tree()
    prompt = tree.add_root(1000, location=0)
    for branch in range(4):
        tree.add_query(tree.add_child(prompt, 20, location=1008 + 32 * branch))
    out = att.run(tree, q, k_cache, v_cache, page_table)

Arrays are NumPy's on the CPU. On a GPU they are torch's or CuPy's, and runs use that library's current stream. Importing deft
needs none of these libraries."""

from . import lang
from ._attention import Attention, Plan, compile, load
from ._beam_tree import BeamStep, BeamTree
from ._capture import Capture, CaptureState, capture, capture_state, stop_capture
from ._compiled import Param, Selects
from ._divided_plan import DividedPlan, ExpandedNode
from ._errors import DiagnosticError, Error, InternalError, MachineError, UsageError
from ._library import FOLDER as _FOLDER
from ._library import LIBRARY as _LIBRARY
from ._library import lib as _lib
from ._operations import merge_states, quantize
from ._options import PlanOptions, RunOptions, TreePlanOptions, TreeRunOptions
from ._paged_batch import PagedBatch, Sharing
from ._page import PlanPage
from ._peers import AgreementHashes, GpuPeers, Peers, agreement_hashes
from ._plans import ConfigChoice, PlanRoom, PlanSummary, Selection
from ._process import Doctor, LogMessage, doctor, get_threads, set_log, set_nvtx, set_threads, support
from ._ranks import Ranks
from ._sequence_tree import NodeTokens, SequenceTree, TokenCopy
from ._shards import merge_shards
from ._spec_of_functions import attention
from ._tree import Node, Query, Stretch, Tree
from ._tune import TunedClass, TunedLists, TunedSparse, TuneProgress, TuneResult, tune

__version__: str = _lib.deft_version().decode()


def has_compiler() -> bool:
    """Returns whether this build of the library can compile specs. Without a compiler it only runs packages."""
    return bool(_lib.deft_has_compiler())


def get_include() -> str:
    """Returns the folder of <deft/deft.h>, for C programs that link this package's library (get_library)."""
    return str(_FOLDER / "include")


def get_library() -> str:
    """Returns the path of this package's shared library. Link a C program to this path and add its folder to the run path:
    `cc host.c -I$INCLUDE $LIBRARY -Wl,-rpath,$(dirname $LIBRARY)`."""
    return str(_LIBRARY)


__all__ = [
    "AgreementHashes", "Attention", "BeamStep", "BeamTree", "Capture", "CaptureState", "ConfigChoice", "DiagnosticError", "DividedPlan", "Doctor",
    "Error", "ExpandedNode", "GpuPeers", "InternalError", "LogMessage", "MachineError", "Node", "NodeTokens", "PagedBatch", "Param", "Peers", "Plan",
    "PlanOptions", "PlanPage", "PlanRoom",
    "PlanSummary", "Query", "Ranks", "RunOptions", "Selection", "Selects", "SequenceTree", "Sharing", "Stretch", "TokenCopy", "Tree",
    "TreePlanOptions", "TreeRunOptions", "TuneProgress", "TuneResult", "TunedClass", "TunedLists", "TunedSparse",
    "UsageError", "agreement_hashes", "attention", "capture", "capture_state", "compile", "doctor", "get_include", "get_library", "get_threads",
    "has_compiler", "lang", "load", "merge_shards", "merge_states", "quantize", "set_log", "set_nvtx", "set_threads", "stop_capture",
    "support", "tune",
]
