#include "tuner/session/Candidates.h"

#include "tests/unit/tuner/session/StepTesting.h"

namespace deft::session {
namespace {

using test::configOf;

TEST(CandidatesTest, OneThatIsThereStaysButThatANeighbourHasItIsRemembered) {
  Candidates candidates;
  const std::string id = candidates.enter({configOf(64), std::nullopt, "guided"});
  EXPECT_EQ(candidates.enter({configOf(64), std::nullopt, kRelatedOrigin}), id);
  EXPECT_EQ(candidates.at(id).origin, "guided");
  EXPECT_EQ(candidates.enter({configOf(64), std::nullopt, kNeighbourOrigin}), id);
  EXPECT_TRUE(candidates.at(id).isOfNeighbour());
  EXPECT_NE(candidates.enter({configOf(128), std::nullopt, "guided"}), id);
}

TEST(CandidatesTest, PhasesAndAPlanForEachStepAreABurden) {
  Candidate mixed{configOf(64), std::nullopt, "guided"};
  mixed.config.order = config::Order::Mixed;
  const Candidate plain{configOf(64), std::nullopt, "guided"},
      twoPhases{configOf(64, 2), std::nullopt, "guided"};
  EXPECT_LT(plain.burden(), mixed.burden());
  EXPECT_LT(plain.burden(), twoPhases.burden());
}

TEST(UntunedChoicesTest, AChoiceOfSomeSearchedTreesIsACandidateForTheOthers) {
  const UntunedChoices choices({configOf(1), configOf(2), configOf(3)}, 2);
  EXPECT_FALSE(choices.isThatOfAllSearched(choices.idOn(0)));
  EXPECT_EQ(choices.searchedIds().size(), 2U);
  EXPECT_EQ(choices.first().chunkTokens, 1);
  const UntunedChoices alike({configOf(1), configOf(1), configOf(3)}, 2);
  EXPECT_TRUE(alike.isThatOfAllSearched(alike.idOn(1)));
  EXPECT_FALSE(alike.isThatOfAllSearched(alike.idOn(2)));
}

} // namespace
} // namespace deft::session
