#include "tools/deftc/common/Commands.h"
#include "tools/deftc/common/Numbers.h"
#include "tools/deftc/common/Progress.h"
#include "tools/deftc/tune/TuneSummary.h"
#include "tuner/report/Page.h"
#include "tuner/report/WinningPlan.h"

#include <CLI/CLI.hpp>

#include <optional>
#include <ostream>

namespace deft::cli {

int writeTunePage(Context &context, const std::vector<report::SessionData> &sessions,
                  const std::string &path) {
  if (auto writable = checkOutput(context, path); !writable)
    return reportError(context, writable.error());
  std::optional<Underway> underway(std::in_place, context, "making the report");
  const std::string page = report::renderPage(sessions, report::winningPlan);
  underway.reset();
  if (const int code = writeOutput(context, path, page); code != kExitOk)
    return code;
  if (path != "-")
    context.out << "report: " << path << " (" << bytesOf(static_cast<double>(page.size())) << ")\n";
  return kExitOk;
}

int writeTuneReport(Context &context, const std::vector<std::string> &journals, const std::string &path) {
  for (const std::string &journal : journals)
    if (auto read = context.files.reads(journal); !read)
      return reportError(context, read.error());
  if (auto writable = checkOutput(context, path); !writable)
    return reportError(context, writable.error());
  std::vector<report::SessionData> sessions;
  std::optional<Underway> underway(std::in_place, context, "reading journals");
  for (const std::string &journal : journals) {
    auto session = report::readSession(journal);
    if (!session) {
      underway.reset();
      return reportError(context, session.error());
    }
    sessions.push_back(std::move(*session));
  }
  underway.reset();
  return writeTunePage(context, sessions, path);
}

void addReportCommand(CLI::App &app, Context &context) {
  struct Options {
    std::vector<std::string> journals;
    std::string output = "report.html";
  };
  auto options = std::make_shared<Options>();
  CLI::App *command = app.add_subcommand("report", "Show the results of tuning sessions as an HTML page");
  command->add_option("JOURNAL", options->journals, "Journals of `deftc tune`, which prints their paths")
      ->required();
  command->add_option("-o,--output", options->output, "The HTML file; - prints it")->capture_default_str();
  command->footer("Example:\n  deftc report ~/.cache/deftc/tune/*.jsonl -o report.html\n"
                  "The page is self-contained and runs no script.");
  context.onRun(command,
                [&context, options] { return writeTuneReport(context, options->journals, options->output); });
}

} // namespace deft::cli
