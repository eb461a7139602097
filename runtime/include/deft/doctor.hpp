#pragma once

#include <deft/result.hpp>

#include <string>

/// What this machine can do, and how to mend what is missing.
namespace deft {

/// What `deftc doctor --json` prints: an object with `usable` (whether attentions run here, on the processor
/// at least) and one object each for the compiler, cpu, gpu, nvrtc and cache, with `ok`, `text` and, where
/// something is missing, `mend`. Loads the driver and NVRTC where they are there.
DEFT_API Result<std::string> doctorReport();

} // namespace deft
