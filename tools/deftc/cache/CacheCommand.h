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

/// The files, and those in the folders, of a command line; none: all that there are.
std::vector<config_cache::FoundFile> filesOf(const std::vector<std::string> &paths);

/// The user's own file of configs for a device, there or not.
support::Result<std::string> ownConfigsPath(const config_cache::DeviceKey &device);

/// "12 compiled kernels, 3.1 MB, in FOLDER".
std::string compiledKernelsText();

void addCacheVerify(CLI::App &cache, Context &context);
void addCacheMerge(CLI::App &cache, Context &context);
void addCachePrune(CLI::App &cache, Context &context);
void addCacheRegret(CLI::App &cache, Context &context);
void addCacheRenew(CLI::App &cache, Context &context);
void addCacheKernels(CLI::App &cache, Context &context);

} // namespace deft::cli
