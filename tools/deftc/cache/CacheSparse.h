#pragma once

#include "runtime/config_cache/SparseFiles.h"
#include "tools/deftc/common/Context.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

/// What the commands of `deftc cache` say and do of files of sparse layers, beside those of configs.
namespace deft::cli {

bool isStale(const config_cache::SparseEntry &entry);

/// What is wrong with an entry beyond its form; empty: nothing. A tile that was not chosen is a package's,
/// whatever may be compiled.
std::string faultOf(const config_cache::SparseEntry &entry, const config_cache::DeviceKey &device);

/// Those in the files and folders of a command line; none: all that there are.
std::vector<config_cache::FoundSparseFile> sparseFilesOf(const std::vector<std::string> &paths);

/// Two lines of `deftc cache list`.
void printListed(const config_cache::FoundSparseFile &found, std::ostream &out);
nlohmann::json listedJson(const config_cache::FoundSparseFile &found);

/// Two lines of `deftc cache show`.
void printShown(const config_cache::SparseEntry &entry, std::ostream &out);
nlohmann::json shownJson(const config_cache::SparseEntry &entry);

/// Prints what a file is; whether it is right.
bool verifyFile(Context &context, const config_cache::FoundSparseFile &found);

} // namespace deft::cli
