#include "runtime/peers/HandleExchange.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace deft::peers {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

/// What goes beside the file descriptor.
struct Message {
  std::int32_t rank;
  std::int64_t bytes;
};

Error failed(const std::string &what) {
  return {ErrorCode::Environment, what + ": " + std::strerror(errno), ""};
}

struct Address {
  sockaddr_un name{};
  socklen_t length = 0;

  const sockaddr *get() const { return reinterpret_cast<const sockaddr *>(&name); }
};

/// A name that begins with a zero byte is in no file system.
Result<Address> addressOf(const std::string &group, int rank) {
  const std::string name = "deft." + group + "." + std::to_string(rank);
  Address address;
  address.name.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof address.name.sun_path)
    return Error{ErrorCode::Usage, "`" + group + "` is too long for a group of GPUs",
                 "90 letters are enough"};
  std::copy(name.begin(), name.end(), address.name.sun_path + 1);
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

/// A message's room, with what may come beside it.
template <std::size_t kRoom> struct Parcel {
  Message message{};
  iovec part{&message, sizeof message};
  alignas(cmsghdr) char beside[kRoom] = {};
  msghdr header{};

  Parcel() {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = beside;
    header.msg_controllen = sizeof beside;
  }
  Parcel(const Parcel &) = delete;
  Parcel &operator=(const Parcel &) = delete;
};

} // namespace

FileHandle &FileHandle::operator=(FileHandle &&other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

FileHandle::~FileHandle() {
  if (number_ >= 0)
    ::close(number_);
}

Result<HandleExchange> HandleExchange::open(const std::string &group, int rank) {
  const auto address = addressOf(group, rank);
  if (!address)
    return address.error();
  FileHandle socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket)
    return failed("cannot make a socket for `" + group + "`");
  const int isWanted = 1;
  if (::setsockopt(socket.number(), SOL_SOCKET, SO_PASSCRED, &isWanted, sizeof isWanted) != 0)
    return failed("cannot ask for the senders' users");
  if (::bind(socket.number(), address->get(), address->length) != 0) {
    if (errno == EADDRINUSE)
      return Error{ErrorCode::Usage, "rank " + std::to_string(rank) + " of `" + group + "` is there already",
                   "each rank has a number of its own, each group a name"};
    return failed("cannot name a socket of `" + group + "`");
  }
  return HandleExchange(group, rank, std::move(socket));
}

Result<void> HandleExchange::send(int toRank, int handle, std::int64_t bytes) const {
  const auto address = addressOf(group_, toRank);
  if (!address)
    return address.error();
  Parcel<CMSG_SPACE(sizeof(int))> parcel;
  parcel.message = {rank_, bytes};
  parcel.header.msg_name = const_cast<sockaddr *>(address->get());
  parcel.header.msg_namelen = address->length;
  cmsghdr *const beside = CMSG_FIRSTHDR(&parcel.header);
  beside->cmsg_level = SOL_SOCKET;
  beside->cmsg_type = SCM_RIGHTS;
  beside->cmsg_len = CMSG_LEN(sizeof handle);
  std::memcpy(CMSG_DATA(beside), &handle, sizeof handle);
  if (::sendmsg(socket_.number(), &parcel.header, MSG_NOSIGNAL) < 0)
    return failed("cannot hand memory to rank " + std::to_string(toRank) + " of `" + group_ + "`");
  return {};
}

Result<HandleExchange::Handed> HandleExchange::receive(double timeoutSeconds) const {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() +
                   std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeoutSeconds));
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd waited{.fd = socket_.number(), .events = POLLIN, .revents = 0};
    constexpr std::int64_t kLongest = 1000;
    const int ready = ::poll(&waited, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, kLongest)));
    if (ready < 0 && errno != EINTR)
      return failed("cannot wait for memory of `" + group_ + "`");
    if (ready <= 0) {
      if (left > 0)
        continue;
      return Error{ErrorCode::Environment, "a rank of `" + group_ + "` has not handed on its memory in time",
                   "it has ended, or needs more time"};
    }
    Parcel<CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(ucred))> parcel;
    const auto came = ::recvmsg(socket_.number(), &parcel.header, MSG_CMSG_CLOEXEC);
    if (came < 0)
      return failed("cannot take memory of `" + group_ + "`");
    FileHandle handle;
    std::optional<uid_t> user;
    for (cmsghdr *beside = CMSG_FIRSTHDR(&parcel.header); beside;
         beside = CMSG_NXTHDR(&parcel.header, beside)) {
      if (beside->cmsg_level == SOL_SOCKET && beside->cmsg_type == SCM_RIGHTS) {
        int number = -1;
        std::memcpy(&number, CMSG_DATA(beside), sizeof number);
        handle = FileHandle(number);
      } else if (beside->cmsg_level == SOL_SOCKET && beside->cmsg_type == SCM_CREDENTIALS) {
        ucred sender{};
        std::memcpy(&sender, CMSG_DATA(beside), sizeof sender);
        user = sender.uid;
      }
    }
    // Anybody on the host may send; strangers are passed over.
    if (handle && user == ::geteuid() && came == sizeof(Message))
      return Handed{parcel.message.rank, parcel.message.bytes, std::move(handle)};
  }
}

} // namespace deft::peers
