#pragma once

#include "tuner/sparse/TuneSparse.h"

namespace deft::sparse {

/// tune() in a child process. So this process does not use CUDA and may start others later, and a kernel
/// that faults or hangs ends only the tuning. It is forked: the caller must not have used CUDA, and should
/// have no other threads. If a tuning does not end for a while after cancellation, it is killed, which is an
/// error.
support::Result<TuneReport> tuneApart(const program::Program &program,
                                      const std::vector<exec::ParamValue> &params, const TuneOptions &options,
                                      const Listener &listener = {});

} // namespace deft::sparse
