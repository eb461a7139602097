#pragma once

#include <deft/c/status.h>

/// The state of this machine, fixes for missing parts, and a table of features by device and engine.

DEFT_C_BEGIN

/// What `deftc doctor --json` prints: an object with `usable` (whether attentions run here, on the processor
/// at least) and one object each for the compiler, cpu, gpu, nvrtc and cache, with `ok`, `text` and, where
/// something is missing, `mend`. Loads the driver and NVRTC where they are there. `*json` is the caller's:
/// deft_free.
DEFT_C_API deft_status deft_doctor(char **json);

/// Which features run where, as `deftc doctor --support --json` prints it: `attention` (features by processor
/// and GPU architecture, with the error where one is not supported), `interfaces` (functions by language) and
/// `engines` (plug-ins by feature). Needs no GPU. `*json` is the caller's: deft_free.
DEFT_C_API deft_status deft_support(char **json);

DEFT_C_END
