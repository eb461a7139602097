#include "tools/deftc/CommandLine.h"

#include "tools/deftc/common/Context.h"

#include <iostream>
#include <unistd.h>

int deftc_command_line(int argc, char **argv) {
  deft::cli::Context context{std::cout,
                             std::cerr,
                             deft::cli::wantsColour(STDOUT_FILENO),
                             deft::cli::wantsColour(STDERR_FILENO),
                             {},
                             ::isatty(STDOUT_FILENO) == 1,
                             ::isatty(STDERR_FILENO) == 1};
  return deft::cli::runDeftc(argc, argv, context);
}
