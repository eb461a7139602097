#pragma once

namespace CLI {
class App;
} // namespace CLI

namespace deft::cli {

struct Context;

/// `deftc bench own`: rows of specs and trees that no table has, on a GPU or on a processor.
void addBenchOwn(CLI::App &bench, Context &context);

} // namespace deft::cli
