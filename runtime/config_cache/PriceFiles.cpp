#include "runtime/config_cache/PriceFiles.h"

#include "compiler/support/AtomicFile.h"
#include "compiler/support/GuardedFile.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>

namespace deft::config_cache {

namespace fs = std::filesystem;
using config::DevicePrices;
using support::Error;
using support::ErrorCode;
using support::GuardedFile;
using support::Result;

namespace {

struct UserFile {
  std::string path;
  DevicePrices prices;
};

/// By path. What cannot be read, or somebody else can have written, is a note.
std::vector<UserFile> userFiles(const std::string &folder, std::vector<std::string> &notes) {
  std::vector<UserFile> files;
  std::error_code none;
  if (folder.empty() || !fs::is_directory(folder, none))
    return files;
  if (const std::string fault = support::faultOfPrivateFolder(folder); !fault.empty()) {
    notes.push_back("`" + folder + "`: " + fault + "; it is not used");
    return files;
  }
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".json")
      paths.push_back(it->path().string());
  std::sort(paths.begin(), paths.end());
  for (std::string &path : paths) {
    const GuardedFile file = support::readGuarded(path, support::kMostCachedBytes, support::Trust::Private);
    if (file.state != GuardedFile::State::Read) {
      notes.push_back("`" + path + "`: " + file.fault + "; it is not used");
      continue;
    }
    auto prices = config::pricesFromText(file.bytes);
    if (prices)
      files.push_back({std::move(path), std::move(*prices)});
    else
      notes.push_back("`" + path + "`: " + prices.error().message + "; it is not used");
  }
  return files;
}

} // namespace

config::PricedDevice pricedDevice(const DeviceKey &key) { return {key.kind, key.arch, key.units, key.name}; }

FoundPrices findPrices(const Places &places, const DeviceKey &device) {
  FoundPrices found;
  const std::vector<UserFile> own = userFiles(places.userPrices, found.notes);
  std::vector<DevicePrices> all; // the user's first: of equally near ones the first counts
  for (const UserFile &file : own)
    all.push_back(file.prices);
  const auto shipped = config::shippedPrices();
  all.insert(all.end(), shipped.begin(), shipped.end());
  const config::PricedDevice wanted = pricedDevice(device);
  const auto index = static_cast<std::size_t>(&config::nearestPrices(wanted, all) - all.data());
  found.of = all[index].device;
  found.prices = config::pricesFor(wanted, all);
  if (index < own.size())
    found.path = own[index].path;
  return found;
}

Result<std::string> savePrices(const Places &places, const DeviceKey &device, const DevicePrices &prices,
                               const nlohmann::json &calibration) {
  if (places.userPrices.empty())
    return Error{ErrorCode::Environment, "there is no place for prices", "set DEFT_CACHE_DIR to a folder"};
  if (const std::string fault = support::makePrivateFolder(places.userPrices); !fault.empty())
    return Error{ErrorCode::Environment, "`" + places.userPrices + "`: " + fault, ""};
  const std::string path = places.userPrices + "/" + device.fileName();
  using State = GuardedFile::State;
  if (const GuardedFile old = support::readGuarded(path, support::kMostCachedBytes, support::Trust::Private);
      old.state == State::Unreadable || old.state == State::Untrusted)
    return Error{ErrorCode::Environment, "`" + path + "`: " + old.fault + "; it is left as it is", ""};
  nlohmann::json object = config::toJson(prices);
  object["calibration"] = calibration;
  if (auto written = support::writeFileAtomically(path, object.dump(2) + "\n", 0600); !written)
    return written.error();
  return path;
}

} // namespace deft::config_cache
