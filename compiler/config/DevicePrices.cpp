#include "compiler/config/DevicePrices.h"

#include "compiler/support/JsonFields.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <tuple>
#include <vector>

namespace deft::config {
namespace {

using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;
using support::WrongField;

constexpr char kFormat[] = "deft-prices";
constexpr int kVersion = 1;
constexpr int kMostUnits = 1 << 20;
/// So many threads read as much as a host's memory gives: at the shipped 10 GB/s of one that is 200 GB/s,
/// about eight channels of DDR4-3200.
constexpr int kThreadsOfMemory = 20;

void checkKeys(const json &object, std::initializer_list<std::string_view> known, const std::string &what) {
  support::require(object.is_object(), what + " is not an object");
  for (const auto &[key, value] : object.items())
    support::require(std::find(known.begin(), known.end(), key) != known.end(),
                     what + " has the unknown key `" + key.substr(0, 64) + "`");
}

PricedDevice deviceFromJson(const json &object) {
  checkKeys(object, {"kind", "arch", "units", "name"}, "device");
  PricedDevice device;
  const std::string kind = support::text(object, "kind");
  support::require(kind == "gpu" || kind == "cpu", "device kind is `" + kind + "`, neither gpu nor cpu");
  device.kind = kind == "gpu" ? DeviceKind::Gpu : DeviceKind::Cpu;
  device.arch = support::text(object, "arch");
  device.units = support::integer(object, "units", 1, kMostUnits);
  device.name = support::text(object, "name");
  return device;
}

CostCoefficients costOf(const json &object, const char *key) {
  auto cost = costFromJson(support::member(object, key));
  support::require(cost.ok(), cost ? "" : "`" + std::string(key) + "`: " + cost.error().message);
  return *cost;
}

DevicePrices read(std::string_view text) {
  const json document = support::parseDocument(text, "the file of prices");
  checkKeys(document, {"format", "version", "device", "plans", "kernels", "note", "calibration"},
            "the file of prices");
  support::require(support::text(document, "format") == kFormat, "its format is not " + std::string(kFormat));
  support::integer(document, "version", kVersion, kVersion);
  DevicePrices prices;
  prices.device = deviceFromJson(support::member(document, "device"));
  prices.plans = costOf(document, "plans");
  prices.kernels = document.contains("kernels") ? costOf(document, "kernels") : prices.plans;
  if (document.contains("note"))
    prices.note = support::text(document, "note");
  return prices;
}

/// How far the prices of one device are from being those of another; the least is the nearest.
auto distance(const PricedDevice &of, const PricedDevice &to) {
  const double units = std::abs(std::log(static_cast<double>(of.units) / std::max(to.units, 1)));
  return std::tuple(of.kind != to.kind, of != to, of.arch != to.arch, of.name != to.name, units,
                    of != someGpu());
}

CostCoefficients withThreads(CostCoefficients cost, int from, int to) {
  const double more =
      static_cast<double>(std::clamp(to, 1, kThreadsOfMemory)) / std::clamp(from, 1, kThreadsOfMemory);
  cost.cacheGBs *= more;
  cost.againGBs *= more;
  cost.partialGBs *= more;
  return cost;
}

} // namespace

// Written by CMake of tuner/prices.
std::span<const std::string_view> shippedPriceTexts();

json toJson(const DevicePrices &prices) {
  const PricedDevice &device = prices.device;
  json object = {{"format", kFormat},
                 {"version", kVersion},
                 {"device",
                  {{"kind", device.kind == DeviceKind::Gpu ? "gpu" : "cpu"},
                   {"arch", device.arch},
                   {"units", device.units},
                   {"name", device.name}}},
                 {"plans", toJson(prices.plans)},
                 {"kernels", toJson(prices.kernels)}};
  if (!prices.note.empty())
    object["note"] = prices.note;
  return object;
}

Result<DevicePrices> pricesFromText(std::string_view text) try {
  return read(text);
} catch (const WrongField &wrong) {
  return Error{ErrorCode::Diagnostics, wrong.what(), ""};
} catch (const json::exception &error) {
  return Error{ErrorCode::Diagnostics, support::faultText(error), ""};
}

std::span<const DevicePrices> shippedPrices() {
  static const std::vector<DevicePrices> all = [] {
    std::vector<DevicePrices> read;
    for (const std::string_view text : shippedPriceTexts()) {
      auto prices = pricesFromText(text);
      if (!prices) // a test reads each of them, so no program has such a one
        throw std::logic_error("prices that ship cannot be read: " + prices.error().message);
      read.push_back(std::move(*prices));
    }
    return read;
  }();
  return all;
}

const DevicePrices &nearestPrices(const PricedDevice &device, std::span<const DevicePrices> known) {
  return *std::min_element(known.begin(), known.end(), [&](const DevicePrices &a, const DevicePrices &b) {
    return distance(a.device, device) < distance(b.device, device);
  });
}

DevicePrices pricesFor(const PricedDevice &device, std::span<const DevicePrices> known) {
  DevicePrices prices = nearestPrices(device, known);
  if (device.kind == DeviceKind::Cpu) {
    prices.plans = withThreads(prices.plans, prices.device.units, device.units);
    prices.kernels = withThreads(prices.kernels, prices.device.units, device.units);
  }
  return prices;
}

CostCoefficients processorPrices(int threads) {
  return pricesFor({DeviceKind::Cpu, "x86-64", threads, ""}).plans;
}

} // namespace deft::config
