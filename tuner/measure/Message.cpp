#include "tuner/measure/Message.h"

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace deft::measure {
namespace {

using Clock = std::chrono::steady_clock;

/// No real message is nearly this long; a larger length is garbage from a dying process.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 31;

bool sendAll(int descriptor, const void *bytes, std::size_t count) {
  const char *at = static_cast<const char *>(bytes);
  while (count > 0) {
    const ssize_t sent = ::send(descriptor, at, count, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR)
      continue;
    if (sent <= 0)
      return false;
    at += sent;
    count -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool sendString(int descriptor, const std::string &bytes) {
  const std::uint64_t size = bytes.size();
  return sendAll(descriptor, &size, sizeof size) && sendAll(descriptor, bytes.data(), bytes.size());
}

class SocketReader {
public:
  SocketReader(int descriptor, double seconds)
      : descriptor_(descriptor), isEndless_(seconds < 0),
        end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(std::max(seconds, 0.0)))) {}

  Receive read(void *bytes, std::size_t count) {
    char *at = static_cast<char *>(bytes);
    while (count > 0) {
      if (const Receive ready = wait(); ready != Receive::Got)
        return ready;
      const ssize_t got = ::recv(descriptor_, at, count, 0);
      if (got < 0 && errno == EINTR)
        continue;
      if (got <= 0)
        return Receive::Closed;
      at += got;
      count -= static_cast<std::size_t>(got);
    }
    return Receive::Got;
  }

  Receive readString(std::string &bytes) {
    std::uint64_t size = 0;
    if (const Receive got = read(&size, sizeof size); got != Receive::Got)
      return got;
    if (size > kMostBytes)
      return Receive::Closed;
    bytes.resize(size);
    return read(bytes.data(), bytes.size());
  }

private:
  Receive wait() const {
    for (;;) {
      int milliseconds = -1;
      if (!isEndless_) {
        const double left = std::chrono::duration<double, std::milli>(end_ - Clock::now()).count();
        milliseconds = static_cast<int>(std::ceil(std::max(left, 0.0)));
      }
      pollfd entry{descriptor_, POLLIN, 0};
      const int ready = ::poll(&entry, 1, milliseconds);
      if (ready > 0)
        return Receive::Got;
      if (ready == 0)
        return Receive::TimedOut;
      if (errno != EINTR)
        return Receive::Closed;
    }
  }

  int descriptor_;
  bool isEndless_;
  Clock::time_point end_;
};

} // namespace

bool sendMessage(int descriptor, const Message &message) {
  const std::uint64_t blobs = message.blobs.size();
  if (!sendString(descriptor, message.head.dump()) || !sendAll(descriptor, &blobs, sizeof blobs))
    return false;
  for (const std::string &blob : message.blobs)
    if (!sendString(descriptor, blob))
      return false;
  return true;
}

Receive receiveMessage(int descriptor, double seconds, Message &message) {
  SocketReader reader(descriptor, seconds);
  std::string head;
  std::uint64_t blobs = 0;
  if (const Receive got = reader.readString(head); got != Receive::Got)
    return got;
  if (const Receive got = reader.read(&blobs, sizeof blobs); got != Receive::Got)
    return got;
  if (blobs > 1024)
    return Receive::Closed;
  message.blobs.resize(blobs);
  for (std::string &blob : message.blobs)
    if (const Receive got = reader.readString(blob); got != Receive::Got)
      return got;
  message.head = nlohmann::json::parse(head, nullptr, /*allow_exceptions=*/false);
  return message.head.is_discarded() ? Receive::Closed : Receive::Got;
}

} // namespace deft::measure
