"""Types that q, K and V have, as a spec writes them."""

import torch

SPEC_DTYPES = {torch.float16: "f16", torch.bfloat16: "bf16"}
