"""FlashMLA's functions, from its own package or from the one that vLLM brings."""

import importlib

PLACES = ("flash_mla", "vllm.third_party.flashmla.flash_mla_interface")


def load():
    """The module with FlashMLA's functions. Raises ImportError where no package has it."""
    said = []
    for place in PLACES:
        try:
            if place.startswith("vllm."):
                importlib.import_module("vllm._flashmla_C")  # registers the operations that the module calls
            return importlib.import_module(place)
        except ImportError as error:
            said.append(f"{place}: {error}")
    raise ImportError("; ".join(said))
