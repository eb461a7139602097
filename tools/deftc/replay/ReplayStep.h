#pragma once

#include "runtime/capture/Step.h"
#include "runtime/capture/StepTree.h"
#include "runtime/program/Program.h"
#include "tools/deftc/common/Context.h"

#include <string>
#include <vector>

namespace deft::cli {

/// A captured step, opened for a run on this machine.
struct ReplayStep {
  std::string path; ///< of its file
  capture::Step step;
  program::Program program;
  tree::KvTree tree; ///< what it computed, in its place
  capture::StepPlace place;
  std::string tensors; ///< the folder; empty: values are random

  const spec::Variant &variant() const { return program.variant(); }
};

/// `isRandom`: captured tensors are left alone.
support::Result<ReplayStep> openStep(Context &context, const std::string &path, bool isRandom);

/// The values of parameters: those of --param, else the captured ones, else the defaults. Arrays over tokens
/// and queries without any stay empty, which means random ones.
support::Result<std::vector<exec::ParamValue>> paramsOf(Context &context, const ReplayStep &step,
                                                        const std::vector<std::string> &assignments);

/// What the file says, a line each, and what of it the replay does not repeat.
std::string stepText(const ReplayStep &step);
/// The latter alone, a sentence each.
std::vector<std::string> differencesOf(const ReplayStep &step);

} // namespace deft::cli
