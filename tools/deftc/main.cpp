#include "tools/deftc/CommandLine.h"

#include <csignal>

int main(int argc, char **argv) {
  // A file that becomes larger than `ulimit -f` allows is an error of who writes it, as on a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  return deftc_command_line(argc, argv);
}
