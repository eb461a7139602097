#pragma once

#include "runtime/config_cache/ConfigFile.h"

#include <nlohmann/json.hpp>

#include <string>

/// Entries and devices for tests of the config cache.
namespace deft::config_cache {

inline DeviceKey h200() { return {DeviceKey::Kind::Gpu, "sm_90", 0, 132, "NVIDIA H200"}; }
/// As many multiprocessors of the same architecture.
inline DeviceKey h100() { return {DeviceKey::Kind::Gpu, "sm_90", 0, 132, "NVIDIA H100 80GB HBM3"}; }

inline config::Config someConfig(int chunkTokens = 256) {
  config::Config config;
  config.partition = spec::Partition::NodeChunk;
  config.chunkTokens = chunkTokens;
  config.phases = {{"wide", 16, config::Family::Sm80, 64, 64, 2, 4},
                   {"narrow", -1, config::Family::Sm80, 16, 64, 3, 4}};
  return config;
}

/// An entry tuned with today's kernels; its chunk tells it from others.
inline Entry someEntry(const TreeClass &treeClass = {14, 6, 3, 2, 0}, int chunkTokens = 256) {
  Entry entry;
  entry.signature = {32, 8, spec::Tensors::alike(128), 16, spec::PageOrder::Nhd, "plain"};
  entry.treeClass = treeClass;
  entry.config = someConfig(chunkTokens);
  entry.measurement = {20.5, 25.625, 0.01, 3};
  // A date ahead of the clock counts as none: these are behind any.
  entry.provenance = {"0.1.0", kernelHash(DeviceKey::Kind::Gpu, {}), "2001-11-21T08:30:00Z", "580.00", ""};
  return entry;
}

inline bool areEqual(const Entry &a, const Entry &b) { return toJson(a) == toJson(b); }

} // namespace deft::config_cache
