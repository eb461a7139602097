#include "tools/deftc/common/Context.h"

#include <csignal>
#include <iostream>
#include <unistd.h>

int main(int argc, char **argv) {
  // A file that becomes larger than `ulimit -f` allows is an error of who writes it, as on a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  deft::cli::Context context{std::cout,
                             std::cerr,
                             deft::cli::wantsColour(STDOUT_FILENO),
                             deft::cli::wantsColour(STDERR_FILENO),
                             {},
                             ::isatty(STDOUT_FILENO) == 1,
                             ::isatty(STDERR_FILENO) == 1};
  return deft::cli::runDeftc(argc, argv, context);
}
