#pragma once

#include "compiler/support/Result.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace deft::measure {

/// What the session and its child processes say to each other: a JSON value, and bytes that would only grow
/// in it (machine code).
struct Message {
  nlohmann::json head;
  std::vector<std::string> blobs;
};

/// How a read ended.
enum class Receive { Got, Closed, TimedOut };

/// Writes all of it; false where the other end is gone.
bool sendMessage(int descriptor, const Message &message);

/// Waits for a whole message for so many seconds; below 0: for ever. What is no message counts as closed.
Receive receiveMessage(int descriptor, double seconds, Message &message);

} // namespace deft::measure
