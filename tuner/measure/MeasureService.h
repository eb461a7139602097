#pragma once

#include "tuner/measure/Machine.h"
#include "tuner/measure/Work.h"
#include "tuner/measure/Worker.h"

#include <functional>

namespace deft::measure {

using MachineMaker = std::function<support::Result<std::unique_ptr<Machine>>()>;

/// Runs and times candidates. Requests are objects with `op`:
///   device                         -> key, driver
///   class: number                  -> {}                     forgets all candidates
///   prepare: id, config, kernels?  -> blocks                 plans for each tree
///   check: id                      -> right, why
///   time: id, tree, repeats        -> us, a list
///   forget: id                     -> {}
/// Kernels are packed by packKernels below. `work` must outlive the service.
support::Result<std::unique_ptr<Service>> makeMeasureService(const Work &work, const MachineMaker &make);

/// Kernels in a message: `head` describes the blobs.
void packKernels(const package::KernelSet &kernels, Message &message);
package::KernelSet unpackKernels(const Message &message, const config::Config &config);

} // namespace deft::measure
