#include "tuner/session/Shard.h"

#include <charconv>

namespace deft::session {

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

} // namespace deft::session
