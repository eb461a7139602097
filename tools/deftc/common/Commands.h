#pragma once

#include "tools/deftc/common/Context.h"

namespace deft::cli {

/// The commands in the order of `deftc --help`: the id, and the name on the command line. XCommand.cpp
/// contains addXCommand of command X. docs/add-a-subcommand.md shows how to add one.
#define DEFT_COMMANDS(X)                                                                                     \
  X(Check, check)                                                                                            \
  X(Fmt, fmt)                                                                                                \
  X(Emit, emit)                                                                                              \
  X(Build, build)                                                                                            \
  X(Show, show)                                                                                              \
  X(Run, run)                                                                                                \
  X(Plan, plan)                                                                                              \
  X(Replay, replay)                                                                                          \
  X(Compare, compare)                                                                                        \
  X(Tune, tune)                                                                                              \
  X(Report, report)                                                                                          \
  X(Bench, bench)                                                                                            \
  X(Specs, specs)                                                                                            \
  X(Workloads, workloads)                                                                                    \
  X(Classify, classify)                                                                                      \
  X(Explain, explain)                                                                                        \
  X(Cache, cache)                                                                                            \
  X(Devices, devices)                                                                                        \
  X(Doctor, doctor)                                                                                          \
  X(Completions, completions)

#define DEFT_ADD_COMMAND(ID, NAME) void add##ID##Command(CLI::App &app, Context &context);
DEFT_COMMANDS(DEFT_ADD_COMMAND)
#undef DEFT_ADD_COMMAND

} // namespace deft::cli
