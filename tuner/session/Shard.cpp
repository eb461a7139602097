#include "tuner/session/Shard.h"

#include <nlohmann/json.hpp>

#include <charconv>
#include <cstdint>

namespace deft::session {

using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

std::optional<int> wholeOf(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

} // namespace

Result<Shard> parseShard(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto index = wholeOf(text.substr(0, slash));
  const auto count = slash == std::string_view::npos ? std::nullopt : wholeOf(text.substr(slash + 1));
  if (!index || !count)
    return Error{ErrorCode::Usage, "`" + std::string(text) + "` is no shard",
                 "write I/N, the number of the shard from 0 and how many there are, such as 0/4"};
  const Shard shard{*index, *count};
  if (auto checked = checkShard(shard); !checked)
    return checked.error();
  return shard;
}

Result<void> checkShard(const Shard &shard) {
  if (shard.count < 1 || shard.count > kMostShards)
    return Error{ErrorCode::Usage,
                 "a session has 1 to " + std::to_string(kMostShards) + " shards, not " +
                     std::to_string(shard.count),
                 ""};
  if (shard.index < 0 || shard.index >= shard.count)
    return Error{ErrorCode::Usage, "there is no shard " + shard.text(),
                 "shards count from 0: " + Shard{0, shard.count}.text() +
                     (shard.count > 1 ? " to " + Shard{shard.count - 1, shard.count}.text() : "")};
  return {};
}

Result<std::optional<Shard>> shardOf(const json &event) {
  const auto found = event.find("shard");
  if (found == event.end())
    return std::optional<Shard>();
  const auto numberOf = [&](const char *key) {
    const json number = found->is_object() ? found->value(key, json()) : json();
    constexpr std::int64_t kNone = -1;
    const std::int64_t value = number.is_number_integer() ? number.get<std::int64_t>() : kNone;
    return value < 0 || value > kMostShards ? -1 : static_cast<int>(value);
  };
  const Shard shard{numberOf("index"), numberOf("count")};
  if (auto checked = checkShard(shard); !checked)
    return Error{ErrorCode::Diagnostics, checked.error().message, ""};
  return std::optional(shard);
}

} // namespace deft::session
