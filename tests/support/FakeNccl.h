#pragma once

/// An NCCL without GPUs, in a library of its own, which device::Nccl::load opens in place of NVIDIA's (path:
/// DEFT_FAKE_NCCL). At most four ranks, as threads or processes, send each other bytes through shared memory.
/// What is put on a stream of the tests' driver is done at once by a thread, or by whoever replays a graph.
/// As with NVIDIA's, calls go on in the background, a rank that does not come is waited for without end, and
/// an abort ends all waiting, but waits itself until no graph holds an exchange.
///
/// DEFT_FAKE_NCCL_VERSION of the environment is the version that it says it has.
namespace deft::fake_nccl {

/// From now on groups have this error, as if a rank had gone; 0 ends it.
void setAsyncError(int error);

/// Groups that are neither destroyed nor aborted.
int openGroups();

} // namespace deft::fake_nccl
