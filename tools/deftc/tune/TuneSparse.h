#pragma once

#include "tools/deftc/common/Context.h"
#include "tuner/sparse/TuneSparse.h"

#include <vector>

namespace deft::cli {

/// What `deftc tune` does of layers that read lists of tokens: tunes them on a GPU, with a line that says how
/// far it is, and prints what was found; the exit code. Ctrl-C stops it and keeps what is done.
int tuneSparse(Context &context, const program::Program &program, const std::vector<exec::ParamValue> &params,
               const sparse::TuneOptions &options);

} // namespace deft::cli
