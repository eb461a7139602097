#include "tuner/workload/Workload.h"

#include "tuner/workload/Generator.h"
#include "tuner/workload/GeneratorSource.h"

namespace deft::workload {

using support::Error;
using support::ErrorCode;
using support::Result;

Workload::Workload() = default;
Workload::~Workload() = default;
Workload::Workload(Workload &&) noexcept = default;
Workload &Workload::operator=(Workload &&) noexcept = default;

int Workload::steps() const { return generator_->steps(); }

Result<void> Workload::start() {
  auto generator = source_->make();
  if (!generator)
    return generator.error();
  generator_ = std::move(*generator);
  tree_.clear();
  step_ = 1;
  edits_.clear();
  queries_.clear();
  Editor editor(tree_, edits_, queries_);
  generator_->start(editor);
  return finishStep(editor.error());
}

Result<void> Workload::finishStep(const std::optional<Error> &error) {
  auto set = error ? Result<void>(*error) : tree_.setQueries(queries_);
  if (set)
    return set;
  Error failed = set.error();
  failed.message = "workload `" + name_ + "` at step " + std::to_string(step_) + ": " + failed.message;
  return failed;
}

Result<bool> Workload::next() {
  if (step_ >= steps())
    return false;
  ++step_;
  edits_.clear();
  queries_.clear();
  Editor editor(tree_, edits_, queries_);
  generator_->advance(step_, editor);
  if (auto finished = finishStep(editor.error()); !finished)
    return finished.error();
  return true;
}

Result<void> Workload::seek(int step) {
  if (step < 1 || step > steps())
    return Error{ErrorCode::Usage,
                 "step " + std::to_string(step) + " of workload `" + name_ + "`, which has steps 1 to " +
                     std::to_string(steps()),
                 ""};
  if (step < step_)
    if (auto started = start(); !started)
      return started;
  while (step_ < step)
    if (auto moved = next(); !moved)
      return moved.error();
  return {};
}

} // namespace deft::workload
