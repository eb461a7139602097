#include "tuner/report/ResultText.h"

#include <gtest/gtest.h>

namespace deft::report {
namespace {

ClassData done(double gain, bool keepsDefault, int candidates) {
  ClassData one;
  one.winnerId = "a";
  one.gain = gain;
  one.keepsDefault = keepsDefault;
  one.candidates.resize(static_cast<std::size_t>(candidates));
  return one;
}

TEST(ResultTextTest, AllThatAreDoneAreCounted) {
  SessionData session;
  session.classes = {done(2, false, 10), done(0.5 * 4, false, 20), done(1, true, 10)};
  session.classes[0].heldOutGain = 1.5;
  EXPECT_EQ(resultText(session),
            "All 3 classes are done: 2 classes have a tuned config, 2.00 times as fast as the untuned one in "
            "the geometric mean (2.00 to 2.00), on trees that were not searched on 1.50 times; 1 keeps the "
            "untuned one. 40 candidates came up, 10 to 20 in a class.");
}

TEST(ResultTextTest, ElevenOfTwelveAreNotTwelve) {
  SessionData session;
  for (int i = 0; i < 10; ++i)
    session.classes.push_back(done(1, true, 4));
  session.classes[0].isCut = true;
  session.classes.emplace_back().candidates.resize(3); // begun
  session.classes.emplace_back();                      // not begun
  EXPECT_EQ(
      resultText(session),
      "10 of 12 classes are done: none has a config that is faster than the untuned one. 1 was begun and "
      "not finished. 1 was not begun. 1 search ended early for lack of time: their entries count as near, "
      "not as exact. 43 candidates came up, 3 to 4 in a class.");
}

TEST(ResultTextTest, ASessionWithoutAClassSaysSo) {
  EXPECT_EQ(resultText({}), "The session ended before its first class.");
}

} // namespace
} // namespace deft::report
