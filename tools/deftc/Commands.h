#pragma once

#include "tools/deftc/common/Context.h"

namespace deft::cli {

void addBenchCommand(CLI::App &app, Context &context);
void addBuildCommand(CLI::App &app, Context &context);
void addCacheCommand(CLI::App &app, Context &context);
void addCheckCommand(CLI::App &app, Context &context);
void addClassifyCommand(CLI::App &app, Context &context);
void addDevicesCommand(CLI::App &app, Context &context);
void addDoctorCommand(CLI::App &app, Context &context);
void addEmitCommand(CLI::App &app, Context &context);
void addExplainCommand(CLI::App &app, Context &context);
void addPlanCommand(CLI::App &app, Context &context);
void addReportCommand(CLI::App &app, Context &context);
void addRunCommand(CLI::App &app, Context &context);
void addSpecsCommand(CLI::App &app, Context &context);
void addTuneCommand(CLI::App &app, Context &context);
void addWorkloadsCommand(CLI::App &app, Context &context);

} // namespace deft::cli
