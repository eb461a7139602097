#include "tuner/report/Page.h"

#include "tests/unit/tuner/report/Events.h"
#include "tests/unit/tuner/sparse/SomeReport.h"
#include "tuner/sparse/ReportJson.h"

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
  EXPECT_THAT(text, HasSubstr("2,200 configs; 880 can be run; thrown out by shared memory 1,300, warps 20"));
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
  EXPECT_THAT(text, HasSubstr("<td>cut short by its budget</td></tr>"));
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

TEST(PageTest, BeginsWithTheResultAndTheCommand) {
  std::vector<nlohmann::json> events = sessionEvents();
  events[0]["command"] = "deftc tune 'my <spec>.deft' --workload all";
  const std::string text = renderPage({*sessionOf(events, "a.jsonl")});
  const std::size_t heading = text.find("</h2>\n<p class=\"result\">1 of 2 classes are done: ");
  ASSERT_NE(heading, std::string::npos) << text;
  const std::size_t command =
      text.find("<code>deftc tune &#39;my &lt;spec&gt;.deft&#39; --workload all</code>");
  const std::size_t plain = text.find("<code>deftc tune 'my &lt;spec&gt;.deft' --workload all</code>");
  EXPECT_LT(heading, std::min(command, plain));
  EXPECT_LT(std::min(command, plain), text.find("<table>"));
}

TEST(PageTest, AClassThatWasNotBegunIsThere) {
  std::vector<nlohmann::json> events = sessionEvents();
  events[0]["classes"] = {kClass, "c1-t15-q6-s3-d2-f0", "c1-t16-q6-s3-d2-f0"};
  const std::string text = renderPage({*sessionOf(events, "a.jsonl")});
  EXPECT_THAT(text, HasSubstr("<td colspan=\"6\" class=\"quiet\">not begun</td>"));
  EXPECT_THAT(text, HasSubstr("1 of 3 classes are done"));
  EXPECT_THAT(text, HasSubstr("The session ended before this class was begun."));
}

TEST(PageTest, ThereIsNoPlotOfOnePoint) {
  std::vector<nlohmann::json> events;
  for (const nlohmann::json &event : sessionEvents())
    if (const std::string id = event.value("id", ""); id.empty() || id == "aa")
      events.push_back(event);
  for (nlohmann::json &event : events)
    if (event["event"] == "done") {
      event["winner"] = "aa";
      event["entry"]["keeps_default"] = true;
    }
  EXPECT_THAT(page(), HasSubstr("<svg"));
  EXPECT_THAT(renderPage({*sessionOf(events, "a.jsonl")}), Not(HasSubstr("<svg")));
}

TEST(PageTest, ThePictureOfTheWinnersPlanIsThatOfItsClass) {
  const auto session = *sessionOf(sessionEvents(), "a.jsonl");
  const std::string text = renderPage({session}, [](const SessionData &, const ClassData &one) {
    return one.isDone() ? "<svg>plan of " + one.name + "</svg>" : std::string();
  });
  EXPECT_THAT(text, HasSubstr("<svg>plan of " + kClass + "</svg>"));
}

TEST(PageTest, SeveralSessionsFollowEachOther) {
  const SessionData one = *sessionOf(sessionEvents(), "a.jsonl");
  SessionData two = one;
  two.variant = "another";
  const std::string text = renderPage({one, two});
  EXPECT_LT(text.find("<h2>llama3_8b"), text.find("<h2>another"));
}

TEST(PageTest, SparseLayersStandBesideTheClasses) {
  EXPECT_THAT(page(), Not(HasSubstr("Sparse layers")));
  std::vector<nlohmann::json> events = sessionEvents();
  events.push_back(sparse::sparseEvent(sparse::someReport()));
  const std::string text = renderPage({*sessionOf(events, "a.jsonl")});
  EXPECT_THAT(text, HasSubstr("<h3>Sparse layers</h3>"));
  EXPECT_THAT(text, HasSubstr("3 kinds of lists are tuned, 1.046 times as fast as by the rules"));
  EXPECT_THAT(text, HasSubstr("<th class=\"n\">held out</th>"));
}

TEST(PageTest, OfSparseLayersAloneThereIsNoTableOfClasses) {
  std::vector<nlohmann::json> events = {sessionEvents().front(),
                                        sparse::sparseEvent(sparse::someReport()),
                                        {{"event", "end"}, {"reason", "budget"}, {"seconds", 31}}};
  events[0].erase("space_size");
  const std::string text = renderPage({*sessionOf(events, "")});
  EXPECT_THAT(text, HasSubstr("<p class=\"result\">Lists are read by tiles of 32 tokens"));
  EXPECT_THAT(text, HasSubstr("<td>stopped by its budget, 31 s</td>"));
  EXPECT_THAT(text, Not(HasSubstr("held out")));
  EXPECT_THAT(text, Not(HasSubstr("before its first class")));
}

} // namespace
} // namespace deft::report
