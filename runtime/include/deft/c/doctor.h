#pragma once

#include <deft/c/status.h>

/// What this machine can do, and how to mend what is missing.

DEFT_C_BEGIN

/// What `deftc doctor --json` prints: an object with `usable` (whether attentions run here, on the processor
/// at least) and one object each for the compiler, cpu, gpu, nvrtc and cache, with `ok`, `text` and, where
/// something is missing, `mend`. Loads the driver and NVRTC where they are there. `*json` is the caller's:
/// deft_free.
DEFT_C_API deft_status deft_doctor(char **json);

DEFT_C_END
