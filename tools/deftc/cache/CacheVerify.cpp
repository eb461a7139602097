#include "runtime/config_cache/VariantLegality.h"
#include "tools/deftc/cache/CacheCommand.h"
#include "tools/deftc/cache/CacheSparse.h"
#include "tools/deftc/common/ConfigOptions.h"
#include "tools/deftc/common/Numbers.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <ostream>

namespace deft::cli {

using config_cache::Entry;
using config_cache::FileState;
using config_cache::FoundFile;

namespace {

/// What is wrong with an entry beyond its form; empty: nothing.
std::string faultOf(const Entry &entry, const config_cache::DeviceKey &device) {
  const target::Target *target = targetOf(device);
  if (device.kind == config_cache::DeviceKey::Kind::Gpu && !target)
    return "no kernels for " + device.arch;
  const spec::Variant variant = entry.signature.variant();
  const auto judged = config_cache::legalityFor(variant, target)(entry.config);
  return judged ? "" : judged.error().message;
}

/// Prints what a file is; whether it is right.
bool verifyFile(Context &context, const FoundFile &found) {
  const config_cache::FileReading &reading = found.reading;
  if (reading.state != FileState::Good) {
    context.out << reading.message << '\n';
    return false;
  }
  const config_cache::ConfigFile &file = reading.file;
  bool isRight = file.notes.empty();
  for (const std::string &note : file.notes)
    context.out << note << '\n';
  long long stale = 0;
  for (const Entry &entry : file.entries) {
    stale += isStale(entry, file.device);
    if (const std::string fault = faultOf(entry, file.device); !fault.empty()) {
      context.out << "`" << found.path << "`: `" << keyOf(entry) << "` cannot be used: " << fault << '\n';
      isRight = false;
    }
  }
  isRight &= isNamedRight(context, found.path, found.origin, file.device);
  context.out << found.path << ": " << (isRight ? "ok, " : "not ok, ")
              << counted(static_cast<long long>(file.entries.size()), "entry", "entries") << " of "
              << file.device.text() << (stale > 0 ? ", " + std::to_string(stale) + " stale" : "") << '\n';
  return isRight;
}

int verify(Context &context, const std::vector<std::string> &paths) {
  const std::vector<FoundFile> files = filesOf(paths);
  int code = kExitOk;
  for (const FoundFile &found : files)
    if (found.reading.state == FileState::Absent)
      code = std::max(code, reportError(context, absentConfig(found.path)));
    else if (!verifyFile(context, found))
      code = std::max<int>(code, kExitDiagnostics);
  const std::vector<config_cache::FoundSparseFile> sparse = sparseFilesOf(paths);
  for (const config_cache::FoundSparseFile &found : sparse)
    if (!verifyFile(context, found))
      code = std::max<int>(code, kExitDiagnostics);
  if (files.empty() && sparse.empty())
    context.out << "there are no configs\n";
  return code;
}

} // namespace

bool isNamedRight(Context &context, const std::string &path, config_cache::Origin origin,
                  const config_cache::DeviceKey &device) {
  const std::string name = path.substr(path.rfind('/') + 1);
  if (origin == config_cache::Origin::Override || name == device.fileName())
    return true;
  context.out << "`" << path << "`: it should be called " << device.fileName() << '\n';
  return false;
}

void addCacheVerify(CLI::App &cache, Context &context) {
  CLI::App *command = cache.add_subcommand(
      "verify", "Check files of tuned configs and sparse layers; exit with 1 if one is wrong");
  auto paths = std::make_shared<std::vector<std::string>>();
  command->add_option("PATH", *paths, "Files, or folders of them; default: all");
  command->footer("Example:\n  deftc cache verify both.json");
  context.onRun(command, [&context, paths] { return verify(context, *paths); });
}

} // namespace deft::cli
