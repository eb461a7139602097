#pragma once

#include "tools/deftc/common/Context.h"
#include "tuner/sparse/TuneSparse.h"

#include <string>
#include <vector>

namespace deft::cli {

/// What `deftc tune` does of layers that read lists of tokens: tunes them on a GPU, with a line that says how
/// far it is, and prints what was found. Ctrl-C stops it and keeps what is done.
support::Result<sparse::TuneReport> tuneSparse(Context &context, const program::Program &program,
                                               const std::vector<exec::ParamValue> &params,
                                               const sparse::TuneOptions &options);

/// Of a tuning that gave a report.
int exitCodeOf(const sparse::TuneReport &report);

/// Keeps it in the journal of the session that it came behind; a warning where that cannot be.
void keepInJournal(Context &context, const sparse::TuneReport &report, const std::string &journal);

/// A page of it alone (HTML); the exit code.
int writeSparsePage(Context &context, const program::Program &program, const sparse::TuneReport &report,
                    const std::string &path);

} // namespace deft::cli
