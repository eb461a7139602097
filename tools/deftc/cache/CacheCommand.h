#pragma once

#include "runtime/config_cache/ConfigCache.h"
#include "tools/deftc/common/ConfigOptions.h"

#include <string>
#include <vector>

/// The parts of `deftc cache`; CacheCommand.cpp has list and show.
namespace deft::cli {

std::string stateName(config_cache::FileState state);

/// Whether other kernels than this deftc's were timed.
bool isStale(const config_cache::Entry &entry, const config_cache::DeviceKey &device);

/// The files, and those in the folders, of a command line; none: all that there are. Those of sparse layers
/// are not among them: sparseFilesOf().
std::vector<config_cache::FoundFile> filesOf(const std::vector<std::string> &paths);

/// A file under another name than its device's is read only where it is named; whether it is right, and else
/// prints it.
bool isNamedRight(Context &context, const std::string &path, config_cache::Origin origin,
                  const config_cache::DeviceKey &device);

/// The user's own file of configs for a device, there or not.
support::Result<std::string> ownConfigsPath(const config_cache::DeviceKey &device);
/// Likewise of sparse layers.
support::Result<std::string> ownSparsePath(const config_cache::DeviceKey &device);

/// "12 compiled kernels, 3.1 MB, in FOLDER".
std::string compiledKernelsText();

void addCacheVerify(CLI::App &cache, Context &context);
void addCacheMerge(CLI::App &cache, Context &context);
void addCachePrune(CLI::App &cache, Context &context);
void addCacheRegret(CLI::App &cache, Context &context);
void addCacheRenew(CLI::App &cache, Context &context);
void addCacheKernels(CLI::App &cache, Context &context);

} // namespace deft::cli
