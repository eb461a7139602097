#include "tuner/report/Page.h"

#include "tests/unit/tuner/report/Events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

namespace deft::report {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string page() { return renderPage({*sessionOf(sessionEvents(), "a.jsonl")}); }

TEST(PageTest, SaysWhatWasTunedAndWhatCameOfIt) {
  const std::string text = page();
  EXPECT_THAT(text, HasSubstr("<h2>llama3_8b on A GPU, sm_90a, 132 multiprocessors</h2>"));
  EXPECT_THAT(
      text, HasSubstr("2,200 configs, of which 880 can be run; thrown out by shared memory 1,300, warps 20"));
  EXPECT_THAT(text, HasSubstr("stopped by its budget; 9 measurements made, 2 reused, 12 s"));
  EXPECT_THAT(text,
              HasSubstr("union, chunk 256, sm80 128x64, 2 stages, 4 warps: 1.25 times faster than untuned, "
                        "80.0 us in place of 100.0"));
  EXPECT_THAT(text, HasSubstr("not finished"));
}

TEST(PageTest, ASearchThatWasCutShortIsTold) {
  EXPECT_THAT(page(), Not(HasSubstr("cut short")));
  std::vector<nlohmann::json> events = sessionEvents();
  for (nlohmann::json &event : events)
    if (event["event"] == "done")
      event["is_cut"] = true;
  const std::string text = renderPage({*sessionOf(events, "a.jsonl")});
  EXPECT_THAT(text, HasSubstr("<td>cut short</td></tr>"));
  EXPECT_THAT(text, HasSubstr("The search was cut short by its time budget."));
}

TEST(PageTest, RejectedCandidatesStandWithTheirReason) {
  EXPECT_THAT(page(), HasSubstr("<td>node, chunk 512, sm80 16x32, 2 stages, 4 warps</td><td>check</td>"
                                "<td class=\"reason\">error 0.5 &lt;b&gt;&amp; more&lt;/b&gt;</td>"));
}

TEST(PageTest, LoadsNothingAndRunsNothing) {
  std::vector<nlohmann::json> events = sessionEvents();
  events[0]["variant"] = "<script>alert(1)</script>";
  events[1]["trees"][0]["name"] = "<img src=x onerror=alert(1)>";
  const std::string text = renderPage({*sessionOf(events, "\"><script src=http://x>")});
  EXPECT_THAT(text, Not(HasSubstr("<script")));
  EXPECT_THAT(text, Not(HasSubstr("<img")));
  EXPECT_THAT(text, HasSubstr("default-src 'none'"));
  // The only addresses are the name of SVG, and links within the page.
  const std::regex address("(href|src)=\"(?!#)|url\\(|@import");
  EXPECT_FALSE(std::regex_search(text, address));
}

TEST(PageTest, EveryElementIsClosed) {
  const std::string text = page();
  std::vector<std::string> open;
  const std::regex tag("<(/?)([a-z0-9]+)([^>]*)>");
  for (std::sregex_iterator at(text.begin(), text.end(), tag), end; at != end; ++at) {
    const std::string name = (*at)[2], rest = (*at)[3];
    if (name == "meta" || rest.ends_with('/'))
      continue;
    if ((*at)[1].length() == 0) {
      open.push_back(name);
      continue;
    }
    ASSERT_FALSE(open.empty()) << name;
    EXPECT_EQ(open.back(), name);
    open.pop_back();
  }
  EXPECT_TRUE(open.empty());
}

TEST(PageTest, SeveralSessionsFollowEachOther) {
  const SessionData one = *sessionOf(sessionEvents(), "a.jsonl");
  SessionData two = one;
  two.variant = "another";
  const std::string text = renderPage({one, two});
  EXPECT_LT(text.find("<h2>llama3_8b"), text.find("<h2>another"));
}

} // namespace
} // namespace deft::report
