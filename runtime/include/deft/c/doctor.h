#pragma once

#include <deft/c/status.h>

/// The state of this machine, fixes for missing parts, and a table of features by device and engine.

DEFT_C_BEGIN

/// The output of `deftc doctor --json`: an object with `usable` (attentions run at least on the processor)
/// and one object each for the compiler, cpu, gpu, nvrtc and cache, with `ok`, `text` and, for a missing
/// part, `mend`. Loads the driver and NVRTC if they exist. Free `*json` with deft_free.
DEFT_C_API deft_status deft_doctor(char **json);

/// The table of features, as `deftc doctor --support --json` prints it: `attention` (features by processor
/// and GPU architecture, with the error if one is not supported), `interfaces` (functions by language) and
/// `engines` (plug-ins by feature). Needs no GPU. Free `*json` with deft_free.
DEFT_C_API deft_status deft_support(char **json);

DEFT_C_END
