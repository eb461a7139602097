#include "tuner/sparse/ReportJson.h"

#include "compiler/support/JsonFields.h"

#include <nlohmann/json.hpp>

namespace deft::sparse {

using config::PhaseConfig;
using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

json tileJson(const PhaseConfig &tile) {
  return {{"tile_q", tile.tileQ}, {"tile_kv", tile.tileKv}, {"stages", tile.stages}, {"warps", tile.warps}};
}

PhaseConfig tileFrom(const json &object) {
  PhaseConfig tile;
  tile.name = "sparse";
  tile.rowsAbove = -1;
  tile.tileQ = object.at("tile_q");
  tile.tileKv = object.at("tile_kv");
  tile.stages = object.at("stages");
  tile.warps = object.at("warps");
  return tile;
}

json listsJson(const std::vector<TunedLists> &lists) {
  json array = json::array();
  for (const TunedLists &one : lists)
    array.push_back({{"budget", one.lists.budget},
                     {"queries", one.lists.queries},
                     {"item_tokens", one.itemTokens},
                     {"cut_untuned", one.cutUntuned},
                     {"tuned_us", one.tunedUs},
                     {"untuned_us", one.untunedUs},
                     {"spread", one.spread}});
  return array;
}

std::vector<TunedLists> listsFrom(const json &array) {
  std::vector<TunedLists> lists;
  for (const json &one : array)
    lists.push_back({{one.at("budget"), one.at("queries")},
                     one.at("item_tokens"),
                     one.at("cut_untuned"),
                     one.at("tuned_us"),
                     one.at("untuned_us"),
                     one.at("spread")});
  return lists;
}

Ended endFrom(const json &name) {
  for (const Ended ended : {Ended::Budget, Ended::Interrupted})
    if (name == toString(ended))
      return ended;
  return Ended::Complete;
}

} // namespace

json toJson(const TuneReport &report) {
  return {{"device", toJson(report.device)},
          {"signature", report.signature.text()},
          {"untuned_tile", tileJson(report.untunedTile)},
          {"tile", tileJson(report.tile)},
          {"tiles", report.tiles},
          {"is_packaged", report.isPackaged},
          {"tile_gain", report.tileGain},
          {"lists", listsJson(report.lists)},
          {"known", listsJson(report.known)},
          {"ended", toString(report.ended)},
          {"seconds", report.seconds},
          {"path", report.path},
          {"notes", report.notes}};
}

json sparseEvent(const TuneReport &report) {
  json event = toJson(report);
  event["event"] = "sparse";
  event["at"] = config_cache::timestamp();
  return event;
}

Result<TuneReport> tuneReportFromJson(const json &object) try {
  TuneReport report;
  auto device = config_cache::deviceKeyFromJson(object.at("device"));
  if (!device)
    return device.error();
  report.device = std::move(*device);
  const std::string signature = object.at("signature");
  const auto parsed = config_cache::VariantSignature::parse(signature);
  if (!parsed)
    return Error{ErrorCode::Diagnostics, "`" + signature + "` is no signature of a variant", ""};
  report.signature = *parsed;
  report.untunedTile = tileFrom(object.at("untuned_tile"));
  report.tile = tileFrom(object.at("tile"));
  report.tiles = object.at("tiles");
  report.isPackaged = object.at("is_packaged");
  report.tileGain = object.at("tile_gain");
  report.lists = listsFrom(object.at("lists"));
  report.known = listsFrom(object.at("known"));
  report.ended = endFrom(object.at("ended"));
  report.seconds = object.at("seconds");
  report.path = object.at("path");
  report.notes = object.at("notes");
  return report;
} catch (const json::exception &wrong) {
  return Error{ErrorCode::Diagnostics,
               "cannot read the results for sparse layers: " + support::faultText(wrong), ""};
}

} // namespace deft::sparse
