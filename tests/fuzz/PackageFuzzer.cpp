// Any bytes as a package, as they are and with right checksums, so that what lies behind these is reached:
// what is read is written and read again unchanged, and its spec goes through the front end.
#include "compiler/package/Package.h"
#include "compiler/support/Hash.h"
#include "runtime/program/LoadedSpec.h"
#include "tests/fuzz/Require.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>

using namespace deft;
using fuzz::require;

namespace {

// compiler/package/Container.h has the format.
constexpr std::size_t kTableBytesAt = 12, kTableAt = 48;

std::uint32_t numberAt(const std::string &bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i)
    value |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return value;
}

std::string sumBytes(const std::string &bytes) {
  const std::string hex = support::sha256Hex(bytes);
  std::string sum;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    sum += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return sum;
}

/// With the sums that the sections and the table have; sizes stay as somebody made them up.
std::string withRightSums(std::string bytes) {
  if (bytes.size() < kTableAt || bytes.size() - kTableAt < numberAt(bytes, kTableBytesAt))
    return bytes;
  const std::size_t tableBytes = numberAt(bytes, kTableBytesAt);
  nlohmann::json table = nlohmann::json::parse(bytes.substr(kTableAt, tableBytes), nullptr, false);
  if (!table.is_array())
    return bytes;
  std::size_t at = kTableAt + tableBytes;
  for (nlohmann::json &section : table) {
    if (!section.is_object() || !section.contains("size") || !section["size"].is_number_unsigned())
      continue;
    const auto asked = section["size"].get<std::uint64_t>();
    const std::size_t size = std::min<std::uint64_t>(asked, bytes.size() - at);
    section["sha256"] = support::sha256Hex(std::string_view(bytes).substr(at, size));
    at += size;
  }
  const std::string text = table.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string sealed = bytes.substr(0, kTableBytesAt);
  for (std::size_t i = 0; i < 4; ++i)
    sealed += static_cast<char>(text.size() >> (8 * i) & 0xff);
  return sealed + sumBytes(text) + text + bytes.substr(kTableAt + tableBytes);
}

void read(const std::string &bytes) {
  const auto package = package::readPackage(bytes, "fuzz.deftpkg");
  if (!package) {
    require(!package.error().message.empty(), "an error without a message");
    require(package.error().code != support::ErrorCode::Internal, "a bug: " + package.error().message);
    return;
  }
  const std::string written = package::writePackage(*package);
  const auto again = package::readPackage(written, "again.deftpkg");
  require(again.ok(), again.ok() ? "" : "what was written is refused: " + again.error().message);
  require(package::writePackage(*again) == written, "a package that its file changes");
  if (const auto spec = program::loadPackagedSpec(*package, "fuzz.deftpkg"); !spec)
    require(spec.error().code != support::ErrorCode::Internal, "a bug: " + spec.error().message);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char *>(data), size);
  read(bytes);
  if (const std::string sealed = withRightSums(bytes); sealed != bytes)
    read(sealed);
  return 0;
}
