#pragma once

#include "tools/deftc/common/Context.h"
#include "tuner/calibrate/Calibrate.h"

namespace deft::cli {

/// `deftc tune --calibrate`: prints which prices became what, and how far they and the choices by them are
/// off.
int calibrateMachine(Context &context, const calibrate::CalibrateInput &input,
                     const calibrate::CalibrateOptions &options);

} // namespace deft::cli
