#pragma once

#include "tuner/sparse/TuneSparse.h"

/// What a tuning of sparse layers may come to.
namespace deft::sparse {

inline TuneReport someReport() {
  TuneReport report;
  report.device = {config_cache::DeviceKey::Kind::Gpu, "sm_90", 0, 132, "NVIDIA H200"};
  report.signature = *config_cache::VariantSignature::parse("q32-kv8-d128-bf16-p16nhd-plain");
  report.untunedTile = {"sparse", -1, config::Family::Sm80, 16, 64, 2, 4};
  report.tile = {"sparse", -1, config::Family::Sm80, 16, 32, 3, 2};
  report.tiles = 21;
  report.tileGain = 1.02;
  report.lists = {{{4096, 8}, 1024, 512, 40, 44, 0.01}, {{1024, 1}, 0, 128, 10, 10, 0.02}};
  report.known = {{{4096, 1}, 256, 0, 12.5, 13, 0.005}};
  report.ended = Ended::Budget;
  report.seconds = 31.5;
  report.path = "/cache/sparse/h200.json";
  report.notes = {"a tile is left out"};
  return report;
}

} // namespace deft::sparse
