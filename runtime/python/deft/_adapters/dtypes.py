"""Types of q, K and V, as a spec writes them."""

import torch

from .. import _ops

SPEC_DTYPES = {torch.float16: "f16", torch.bfloat16: "bf16"}
# That K and V alone may have.
CACHE_DTYPES = {getattr(torch, name): word for word, name in _ops.EIGHT_BIT_DTYPES.items() if hasattr(torch, name)}
