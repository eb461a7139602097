#include "compiler/package/Container.h"

#include "compiler/support/Hash.h"

#include <nlohmann/json.hpp>

#include <optional>

namespace deft::package {
namespace {

using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;

constexpr std::string_view kMagic = "DEFTPKG\n";
constexpr std::size_t kHeaderBytes = 8 + 4 + 4 + 32;
constexpr std::uint64_t kMostSectionBytes = std::uint64_t{1} << 32; ///< as much as is read of a whole file

std::string rawSha256(std::string_view bytes) {
  support::Sha256 hash;
  hash.update(bytes);
  const auto digest = hash.finish();
  return {reinterpret_cast<const char *>(digest.data()), digest.size()};
}

void putU32(std::string &out, std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8)
    out += static_cast<char>(value >> shift & 0xff);
}

std::uint32_t getU32(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i)
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

struct TableEntry {
  std::string name;
  std::uint64_t size = 0;
  std::string sha256;
};

/// The table passed its checksum, so a malformed one was written so; none says that much.
std::optional<std::vector<TableEntry>> parseTable(std::string_view text) {
  std::vector<TableEntry> entries;
  try {
    for (const json &row : json::parse(text)) {
      const json &size = row.at("size");
      if (!size.is_number_unsigned())
        return std::nullopt;
      entries.push_back({row.at("name").get<std::string>(), size.get<std::uint64_t>(),
                         row.at("sha256").get<std::string>()});
    }
  } catch (const json::exception &) {
    return std::nullopt;
  }
  return entries;
}

} // namespace

bool looksLikePackage(std::string_view bytes) { return bytes.starts_with(kMagic); }

std::string writeContainer(const std::vector<Section> &sections) {
  json table = json::array();
  for (const Section &section : sections)
    table.push_back({{"name", section.name},
                     {"size", section.bytes.size()},
                     {"sha256", support::sha256Hex(section.bytes)}});
  const std::string tableText = table.dump();
  std::string out(kMagic);
  putU32(out, kContainerVersion);
  putU32(out, static_cast<std::uint32_t>(tableText.size()));
  out += rawSha256(tableText);
  out += tableText;
  for (const Section &section : sections)
    out += section.bytes;
  return out;
}

Result<std::vector<Section>> readContainer(std::string_view bytes, const std::string &path) {
  const std::string name = "package `" + path + "` ";
  const auto error = [&](const std::string &what, const std::string &hint = {}) {
    return Error{ErrorCode::Diagnostics, name + what, hint};
  };
  const std::string rebuild = "build it again with `deftc build`";
  const auto truncated = [&](std::uint64_t expected) {
    return error("is truncated: it has " + std::to_string(bytes.size()) + " bytes of " +
                     std::to_string(expected),
                 rebuild);
  };

  const std::string_view head = bytes.substr(0, kMagic.size());
  if (head != kMagic.substr(0, head.size()) || bytes.empty())
    return Error{ErrorCode::Diagnostics, "`" + path + "` is not a package", "make one with `deftc build`"};
  if (bytes.size() < kHeaderBytes)
    return error("is truncated: it has " + std::to_string(bytes.size()) + " bytes, its header alone needs " +
                     std::to_string(kHeaderBytes),
                 rebuild);
  const std::uint32_t version = getU32(bytes, 8);
  if (version > kContainerVersion)
    return error("has format " + std::to_string(version) + "; this deftc reads format " +
                     std::to_string(kContainerVersion),
                 "use a newer deftc, or build the package again with this one");
  if (version == 0)
    return error("is altered: format 0 does not exist", rebuild);
  if (version < kContainerVersion)
    return error("has format " + std::to_string(version) + "; this deftc reads format " +
                     std::to_string(kContainerVersion),
                 "build the package again with this deftc");
  const std::uint64_t tableBytes = getU32(bytes, 12);
  if (bytes.size() < kHeaderBytes + tableBytes)
    return truncated(kHeaderBytes + tableBytes);
  const std::string_view tableText = bytes.substr(kHeaderBytes, tableBytes);
  if (rawSha256(tableText) != bytes.substr(16, 32))
    return error("is altered: its table of sections does not match its checksum", rebuild);
  const auto table = parseTable(tableText);
  if (!table)
    return error("is malformed: its table of sections is not understood", rebuild);

  // The sum cannot wrap: a table of at most 2^32 bytes has fewer than 2^32 rows.
  std::uint64_t end = kHeaderBytes + tableBytes;
  for (const TableEntry &entry : *table) {
    if (entry.size > kMostSectionBytes)
      return error("is malformed: section `" + entry.name + "` is to have " + std::to_string(entry.size) +
                       " bytes, above the limit of " + std::to_string(kMostSectionBytes),
                   rebuild);
    end += entry.size;
  }
  if (bytes.size() < end)
    return truncated(end);
  if (bytes.size() > end)
    return error("is altered: " + std::to_string(bytes.size() - end) + " bytes follow its last section",
                 rebuild);

  std::vector<Section> sections;
  std::uint64_t at = kHeaderBytes + tableBytes;
  for (const TableEntry &entry : *table) {
    const std::string_view content = bytes.substr(at, entry.size);
    if (support::sha256Hex(content) != entry.sha256)
      return error("is altered: section `" + entry.name + "` does not match its checksum", rebuild);
    sections.push_back({entry.name, std::string(content)});
    at += entry.size;
  }
  return sections;
}

} // namespace deft::package
