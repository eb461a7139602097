#pragma once

#include "compiler/support/Result.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace deft::measure {

/// A message between the session and its child processes: a JSON value, and bytes (machine code) that would
/// only grow in it.
struct Message {
  nlohmann::json head;
  std::vector<std::string> blobs;
};

/// How a read ended.
enum class Receive { Got, Closed, TimedOut };

/// Writes the whole message; false if the other end is closed.
bool sendMessage(int descriptor, const Message &message);

/// Waits up to `seconds` for a whole message; below 0: for ever. Malformed data counts as closed.
Receive receiveMessage(int descriptor, double seconds, Message &message);

} // namespace deft::measure
