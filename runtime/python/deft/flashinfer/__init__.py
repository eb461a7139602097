"""FlashInfer's wrappers, with its arguments. They find shared pages by themselves.

    from deft.flashinfer import BatchDecodeWithPagedKVCacheWrapper  # in place of: from flashinfer import ...

Tensors are torch's, on a GPU or on the CPU. An unsupported argument raises NotImplementedError; the error names it."""

from ._batch_attention import BatchAttention
from ._cascade import MultiLevelCascadeAttentionWrapper
from ._decode import (
    BatchDecodeWithPagedKVCacheWrapper,
    CUDAGraphBatchDecodeWithPagedKVCacheWrapper,
    fast_decode_plan,
)
from ._merge import merge_state, merge_state_in_place, merge_states
from ._mla import BatchMLAPagedAttentionWrapper, MLAPlanMetadata
from ._prefill import BatchPrefillWithPagedKVCacheWrapper
from ._ragged import BatchPrefillWithRaggedKVCacheWrapper
from ._sinks import BatchAttentionWithAttentionSinkWrapper, BatchDecodeWithAttentionSinkWrapper

__all__ = [
    "BatchAttention",
    "BatchAttentionWithAttentionSinkWrapper",
    "BatchDecodeWithAttentionSinkWrapper",
    "BatchDecodeWithPagedKVCacheWrapper",
    "BatchMLAPagedAttentionWrapper",
    "BatchPrefillWithPagedKVCacheWrapper",
    "BatchPrefillWithRaggedKVCacheWrapper",
    "CUDAGraphBatchDecodeWithPagedKVCacheWrapper",
    "MLAPlanMetadata",
    "MultiLevelCascadeAttentionWrapper",
    "fast_decode_plan",
    "merge_state",
    "merge_state_in_place",
    "merge_states",
]
