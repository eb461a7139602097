"""Types that q, K and V have, as a spec writes them."""

import torch

SPEC_DTYPES = {torch.float16: "f16", torch.bfloat16: "bf16"}
CACHE_DTYPES = {torch.float8_e4m3fn: "fp8_e4m3", torch.float8_e5m2: "fp8_e5m2"}  # that K and V alone may have
