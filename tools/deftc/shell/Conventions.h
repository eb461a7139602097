#pragma once

#include <array>

/// What all commands have in common, for the manual page and docs/command-line.md (a test compares them).
namespace deft::cli {

struct Convention {
  const char *name;
  const char *meaning;
};

inline constexpr std::array kExitCodes = {
    Convention{"0", "done"},
    Convention{"1", "a spec is wrong, or a check did not hold"},
    Convention{"2", "the command line is wrong"},
    Convention{"3", "the machine lacks something: a file, memory, a GPU, NVRTC"},
    Convention{"70", "a bug of deftc"},
    Convention{"128 + N", "ended by signal N"},
};

inline constexpr std::array kEnvironment = {
    Convention{"DEFT_CONFIG_PATH", "a config, a file of tuned configs or a folder of such files, used "
                                   "before all others, like --config"},
    Convention{"DEFT_CACHE_DIR", "the folder of compiled kernels and tuned configs; else the folder deftc in "
                                 "XDG_CACHE_HOME, or in ~/.cache"},
    Convention{"DEFT_CAPTURE",
               "a folder into which programs that use the library write captured steps, for replay"},
    Convention{"CUDA_HOME, CUDA_PATH", "a CUDA toolkit, for NVRTC and for emit --as sass (nvdisasm)"},
    Convention{"DEFT_NVTX", "1: plans, runs and compilations are ranges for profilers"},
    Convention{"NO_COLOR", "if set and not empty, output has no colours"},
};

} // namespace deft::cli
