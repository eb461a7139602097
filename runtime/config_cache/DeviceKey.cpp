#include "runtime/config_cache/DeviceKey.h"

#include "runtime/exec/cpu/SharedObject.h"
#include "runtime/tree/StrictJson.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fstream>
#include <string_view>

namespace deft::config_cache {

using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

/// Letters and digits in lower case, everything else as one `_`.
std::string fileWord(const std::string &text) {
  std::string word;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && std::isalnum(byte))
      word += static_cast<char>(std::tolower(byte));
    else if (!word.empty() && word.back() != '_')
      word += '_';
  }
  while (word.ends_with('_'))
    word.pop_back();
  constexpr std::size_t kMostLength = 80;
  return word.substr(0, kMostLength);
}

Error wrongDevice(const std::string &what) { return {ErrorCode::Diagnostics, "device: " + what, ""}; }

} // namespace

std::string cpuModelName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const std::size_t colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return "unnamed";
}

DeviceKey DeviceKey::ofGpu(const device::DeviceFacts &facts) {
  return {Kind::Gpu, "sm_" + std::to_string(facts.major) + std::to_string(facts.minor), 0,
          facts.multiprocessors, facts.name};
}

DeviceKey DeviceKey::ofCpu(int threads) {
  const int level = exec::hostIsaLevel();
  const std::string arch = level > 0 ? "x86-64-v" + std::to_string(level) : "x86-64";
  return {Kind::Cpu, arch, level >= 4 ? 512 : level == 3 ? 256 : 128, threads, cpuModelName()};
}

bool DeviceKey::isSibling(const DeviceKey &other) const {
  return kind == other.kind && arch == other.arch && vectorBits == other.vectorBits && units == other.units &&
         name != other.name;
}

std::string DeviceKey::fileName() const {
  return arch + "-" + std::to_string(units) + "-" + fileWord(name) + ".json";
}

std::string DeviceKey::text() const {
  const std::string what = kind == Kind::Gpu ? "multiprocessor" : "thread";
  return name + " (" + arch + ", " + std::to_string(units) + " " + what + (units == 1 ? "" : "s") + ")";
}

const target::Target *targetOf(const DeviceKey &key) {
  constexpr std::string_view kPrefix = "sm_";
  int capability = 0;
  if (key.kind != DeviceKey::Kind::Gpu || !key.arch.starts_with(kPrefix))
    return nullptr;
  std::from_chars(key.arch.data() + kPrefix.size(), key.arch.data() + key.arch.size(), capability);
  return target::targetForDevice(capability / 10, capability % 10);
}

json toJson(const DeviceKey &key) {
  json object = {{"kind", key.kind == DeviceKey::Kind::Gpu ? "gpu" : "cpu"},
                 {"arch", key.arch},
                 {"units", key.units},
                 {"name", key.name}};
  if (key.kind == DeviceKey::Kind::Cpu)
    object["vector_bits"] = key.vectorBits;
  return object;
}

Result<DeviceKey> deviceKeyFromJson(const json &object) {
  if (auto checked = tree::checkKeys(object, "device", {"kind", "arch", "units", "name"}, {"vector_bits"});
      !checked)
    return checked.error();
  DeviceKey key;
  const auto kind = tree::readString(object["kind"], "device kind");
  const auto arch = tree::readString(object["arch"], "device arch");
  const auto name = tree::readString(object["name"], "device name");
  const auto units = tree::readInt(object["units"], "device units");
  for (const auto *text : {&kind, &arch, &name})
    if (!*text)
      return text->error();
  if (!units)
    return units.error();
  if (*kind != "gpu" && *kind != "cpu")
    return wrongDevice("kind is `" + *kind + "`, neither gpu nor cpu");
  key.kind = *kind == "gpu" ? DeviceKey::Kind::Gpu : DeviceKey::Kind::Cpu;
  key.arch = *arch;
  key.name = *name;
  key.units = *units;
  if (key.units < 1)
    return wrongDevice("units is " + std::to_string(key.units) + ", less than 1");
  if (key.arch.empty() || key.name.empty())
    return wrongDevice("arch or name is empty");
  const auto isNamePart = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; };
  if (!std::all_of(key.arch.begin(), key.arch.end(), isNamePart)) // files are named by it
    return wrongDevice("arch has more in it than letters, digits, `_` and `-`");
  const bool hasVectors = key.kind == DeviceKey::Kind::Cpu;
  if (hasVectors != object.contains("vector_bits"))
    return wrongDevice(hasVectors ? "a cpu lacks `vector_bits`" : "a gpu has no `vector_bits`");
  if (hasVectors) {
    const auto bits = tree::readInt(object["vector_bits"], "device vector_bits");
    if (!bits)
      return bits.error();
    key.vectorBits = *bits;
  }
  return key;
}

} // namespace deft::config_cache
