#include "tuner/measure/Message.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace deft::measure {
namespace {

/// Two ends of a connection.
struct Ends {
  int at[2] = {-1, -1};
  Ends() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, at), 0); }
  ~Ends() {
    close(0);
    close(1);
  }
  void close(int end) {
    if (at[end] >= 0)
      ::close(at[end]);
    at[end] = -1;
  }
};

TEST(MessageTest, ArrivesAsItWasSentHoweverLargeItIs) {
  const Message sent{{{"op", "prepare"}, {"numbers", {1, 2.5, -3}}, {"text", "\u00e9\n"}},
                     {"", std::string("a\0b", 3), std::string(std::size_t{3} << 20, 'x')}};
  Ends ends;
  bool isSent = false;
  std::thread sender([&] { isSent = sendMessage(ends.at[0], sent) && sendMessage(ends.at[0], {7, {}}); });
  Message message;
  EXPECT_EQ(receiveMessage(ends.at[1], 10, message), Receive::Got);
  EXPECT_EQ(message.head, sent.head);
  EXPECT_EQ(message.blobs, sent.blobs);
  EXPECT_EQ(receiveMessage(ends.at[1], -1, message), Receive::Got);
  EXPECT_EQ(message.head, 7);
  EXPECT_TRUE(message.blobs.empty()) << "of the message before";
  sender.join();
  EXPECT_TRUE(isSent);
}

TEST(MessageTest, NobodyAtTheOtherEndIsNoCrash) {
  Ends ends;
  ends.close(1);
  EXPECT_FALSE(sendMessage(ends.at[0], {"hello", {}})); // without a signal that ends the process
  Ends others;
  others.close(0);
  Message message;
  EXPECT_EQ(receiveMessage(others.at[1], -1, message), Receive::Closed);
}

TEST(MessageTest, MoreBlobsThanAnybodySendsAreGarbage) {
  Ends ends;
  const std::uint64_t two = 2, many = 1025;
  ASSERT_EQ(::write(ends.at[0], &two, sizeof two), static_cast<ssize_t>(sizeof two));
  ASSERT_EQ(::write(ends.at[0], "{}", 2), 2);
  ASSERT_EQ(::write(ends.at[0], &many, sizeof many), static_cast<ssize_t>(sizeof many));
  Message message;
  EXPECT_EQ(receiveMessage(ends.at[1], 1, message), Receive::Closed);
}

TEST(MessageTest, GarbageIsNoMessage) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  ASSERT_EQ(::write(ends[0], "\xff\xff\xff\xff\xff\xff\xff\xff garbage", 16), 16);
  Message message;
  EXPECT_EQ(receiveMessage(ends[1], 1, message), Receive::Closed);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(MessageTest, HalfAMessageIsWaitedForAndNoLonger) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  ASSERT_EQ(::write(ends[0], "\x05\0\0\0", 4), 4);
  Message message;
  EXPECT_EQ(receiveMessage(ends[1], 0.05, message), Receive::TimedOut);
  ::close(ends[0]);
  EXPECT_EQ(receiveMessage(ends[1], 1, message), Receive::Closed);
  ::close(ends[1]);
}

} // namespace
} // namespace deft::measure
