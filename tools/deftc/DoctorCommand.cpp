#include "runtime/doctor/Doctor.h"
#include "runtime/doctor/Support.h"
#include "tools/deftc/common/Commands.h"

#include <CLI/CLI.hpp>

#include <ostream>

namespace deft::cli {
namespace {

int printReport(Context &context, bool asJson) {
  const doctor::Report report = doctor::examine();
  const int code = report.isUsable() ? kExitOk : kExitEnvironment;
  if (asJson) {
    context.out << toJson(report).dump(2) << '\n';
    return code;
  }
  context.out << "deftc " DEFT_VERSION "\n";
  const auto colour = [&](const char *escape) { return context.outColour ? escape : ""; };
  for (const doctor::Finding &finding : report.findings) {
    context.out << colour(finding.ok ? "\x1b[32m" : "\x1b[33m") << (finding.ok ? "  ok  " : "  --  ")
                << colour("\x1b[0m") << finding.name << std::string(10 - finding.name.size(), ' ')
                << finding.text << '\n';
    if (!finding.mend.empty())
      context.out << "                = hint: " << finding.mend << '\n';
  }
  context.out << (report.runsOnGpu   ? "specs run on the GPU and the CPU of this machine\n"
                  : report.runsOnCpu ? "specs run on the CPU of this machine\n"
                                     : "nothing runs on this machine\n");
  return code;
}

int printSupport(Context &context, bool asJson) {
  context.out << (asJson ? doctor::supportTable().dump(2) + '\n' : doctor::supportPage());
  return kExitOk;
}

} // namespace

void addDoctorCommand(CLI::App &app, Context &context) {
  CLI::App *command =
      app.add_subcommand("doctor", "Report the state of this machine, and fixes for missing parts");
  struct Options {
    bool asJson = false, isSupport = false;
  };
  auto options = std::make_shared<Options>();
  command->add_flag("--json", options->asJson, "Print JSON");
  command->add_flag(
      "--support", options->isSupport,
      "Print which features run on which processors, GPUs and engines, and the errors of the others");
  command->footer(
      "Examples:\n  deftc doctor\n  deftc doctor --support\nThe exit code is 0 when specs run here, at "
      "least on the CPU, and 3 otherwise.");
  context.onRun(command, [&context, options] {
    return options->isSupport ? printSupport(context, options->asJson)
                              : printReport(context, options->asJson);
  });
}

} // namespace deft::cli
