#include "compiler/config/ConfigJson.h"
#include "compiler/support/Numbers.h"
#include "compiler/support/Svg.h"
#include "runtime/plan/Slope.h"
#include "runtime/plan/report/HiddenParts.h"
#include "runtime/plan/report/PlanReport.h"
#include "runtime/tree/TreeSummary.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

/// A plan in one picture. Above, the tree: a row is a query, a box is a node, as wide as its tokens and as
/// tall as its readers, right of its parent. So an area is pairs of a token and a query that sees it, and
/// every item is a stretch of it in a colour of its own. Below, the blocks, with the same colours stacked up.
namespace deft::plan {

using support::bytesOf;
using support::counted;
using support::rounded;
using support::Svg;
using support::withSeparators;

namespace {

constexpr double kWidth = 1280, kMargin = 40, kGutter = 64, kGap = 3;
constexpr double kTreeHeight = 560, kMostRowHeight = 24, kLeastRowHeight = 0.5;
constexpr double kLoadHeight = 150;
constexpr int kMostQueries = 1200; ///< rows that are drawn
constexpr int kMostUnits = 6000;   ///< drawn one by one in the loads
const char *const kInk = "#222", *const kFaint = "#667", *const kSample = "#9cc3e6";

class Picture {
public:
  explicit Picture(const PlanReport &report) : report_(report), plan_(report.plan) {}

  std::string draw() {
    measure();
    chooseColours();
    drawHead();
    drawTree();
    drawLoads();
    return svg_.file(kWidth, y_ + kMargin / 2);
  }

private:
  struct Column { ///< of one depth
    double x = 0, width = 0;
    int mostTokens = 0;
  };
  struct Colour {
    double hue = 0, light = 0;
  };
  struct Readers { ///< of a node, in the plan's order
    int begin = 1 << 30, end = 0;
  };

  void measure() {
    const std::vector<tree::Node> &nodes = report_.tree.nodes();
    readers_.resize(nodes.size());
    for (int i = 0; i < plan_.queryCount(); ++i)
      addReaders(report_.query(i).node, {i, i + 1});
    std::vector<int> order;
    for (int node = report_.tree.firstRoot(); node >= 0; node = report_.tree.nextInPreorder(node))
      order.push_back(node);
    for (auto node = order.rbegin(); node != order.rend(); ++node) // children before parents
      if (nodes[*node].parent >= 0)
        addReaders(nodes[*node].parent, readers_[*node]);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      unread_ += nodes[i].isAlive && readers_[i].end == 0;
      if (readers_[i].end == 0)
        continue;
      if (nodes[i].depth >= static_cast<int>(columns_.size()))
        columns_.resize(nodes[i].depth + 1);
      Column &column = columns_[nodes[i].depth];
      column.mostTokens = std::max(column.mostTokens, nodes[i].tokens);
    }
    shownQueries_ = std::min(plan_.queryCount(), kMostQueries);
    rowHeight_ = std::clamp(kTreeHeight / std::max(shownQueries_, 1), kLeastRowHeight, kMostRowHeight);
    // Square roots, so that a prompt of thousands of tokens leaves room for its branches.
    double sum = 0;
    for (const Column &column : columns_)
      sum += std::sqrt(column.mostTokens) + 2;
    // Of hundreds of levels gaps alone would be wider than the picture.
    const double count = static_cast<double>(std::max<std::size_t>(columns_.size(), 1));
    const double gap = std::min(kGap, kWidth / 4 / count);
    const double space = kWidth - 2 * kMargin - kGutter - gap * count;
    double x = kMargin + kGutter;
    for (Column &column : columns_) {
      column.x = x;
      column.width = std::max(std::min(1.0, gap), space * (std::sqrt(column.mostTokens) + 2) / sum);
      x += column.width + gap;
    }
  }

  void addReaders(int node, const Readers &more) {
    readers_[node].begin = std::min(readers_[node].begin, more.begin);
    readers_[node].end = std::max(readers_[node].end, more.end);
  }

  struct Box {
    double x = 0, y = 0, width = 0, height = 0;
  };
  struct Label {
    std::string text;
    Box box;
  };

  /// For a label, where no other one is.
  bool takeRoom(const Box &box) {
    const auto meets = [&](const Box &other) {
      return box.x < other.x + other.width && other.x < box.x + box.width && box.y < other.y + other.height &&
             other.y < box.y + box.height;
    };
    if (std::any_of(taken_.begin(), taken_.end(), meets))
      return false;
    taken_.push_back(box);
    return true;
  }

  void drawHead() {
    const tree::TreeSummary tree = tree::summarize(report_.tree);
    const auto items = static_cast<long long>(plan_.items.size());
    const auto direct = std::count_if(plan_.items.begin(), plan_.items.end(),
                                      [](const abi::Item &item) { return item.partialBegin < 0; });
    svg_.raw("<defs><pattern id=\"partial\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
             "patternTransform=\"rotate(45)\"><rect width=\"2\" height=\"6\" fill=\"white\" "
             "fill-opacity=\"0.55\"/></pattern>"
             "<pattern id=\"hidden\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\">"
             "<rect width=\"5\" height=\"5\" fill=\"#eef0f3\"/><path d=\"M0 5L5 0\" stroke=\"#c3c9d2\" "
             "stroke-width=\"0.8\"/></pattern></defs>\n"
             "<style>.i:hover :is(rect,polygon){stroke:#000;stroke-width:1.5}</style>\n");
    y_ = kMargin + 6;
    const std::string title = "Partition " + config::partitionName(plan_.partition) + ": " +
                              report_.treeName + " for " + report_.variantName;
    const double fitting = 22 * (kWidth - 2 * kMargin) / Svg::widthOf(title, 22 * 1.1); // bold is wider
    svg_.text(kMargin, y_, title, {std::clamp(fitting, 9.0, 22.0), kInk, "start", true});
    say(14, kInk,
        counted(tree.nodes, "node", "nodes") + ", " + counted(tree.queries, "query", "queries") + ", " +
            readText(report_) + ".  " + counted(items, "item", "items") + " for each of " +
            unitsText(report_.facts) + ", chunks of at most " + withSeparators(plan_.chunkTokens) +
            " tokens.");
    say(14, kInk,
        "Cache " + bytesOf(static_cast<double>(report_.io.cacheOnce)) + " once, " +
            bytesOf(static_cast<double>(report_.io.cache - report_.io.cacheOnce)) + " again; partials " +
            bytesOf(static_cast<double>(report_.io.partials)) + " from " +
            counted(static_cast<long long>(plan_.mergeSlot.size()), "slot", "slots") + "; " +
            rounded(report_.cost.microseconds, 1) + " µs by the cost model.");
    y_ += 26;
    drawLegend(direct, items - direct);
  }

  void say(double size, const char *fill, const std::string &text) {
    y_ += size + 8;
    svg_.text(kMargin, y_, text, {size, fill});
  }

  void drawLegend(long long direct, long long partial) {
    double x = kMargin;
    const auto entry = [&](const std::string &fill, const std::string &text, bool isPartial) {
      svg_.rect(x, y_ - 11, 26, 14, "fill=\"" + fill + "\" stroke=\"#444\" stroke-width=\"0.8\"");
      if (isPartial)
        svg_.rect(x, y_ - 11, 26, 14, "fill=\"url(#partial)\"");
      svg_.text(x + 32, y_, text, {12, kInk});
      x += 32 + Svg::widthOf(text, 12) + 18;
    };
    entry("none", "a node: width its tokens, height its queries", false);
    entry(kSample, "an item that writes outputs (" + withSeparators(direct) + ")", false);
    if (partial > 0)
      entry(kSample, "an item that writes partials, to be merged (" + withSeparators(partial) + ")", true);
    if (hides())
      entry("url(#hidden)", "hidden by the mask", false);
    y_ += 18;
    svg_.text(
        kMargin, y_,
        "A colour is one item: what a block reads and computes at a time, for each KV head. Widths compare "
        "within a column.",
        {12, kFaint});
  }

  bool hides() const { return !report_.facts.reach.isAll() || report_.shows; }

  /// Chunks of the same queries get hues far apart, as do the same chunks of neighbouring queries. Below each
  /// other in the tree, where hues may meet, one is light and one is dark.
  void chooseColours() {
    std::vector<int> order(plan_.items.size());
    std::iota(order.begin(), order.end(), 0);
    const auto keyOf = [&](int i) {
      const abi::Item &item = plan_.items[i];
      return std::tuple(item.queryBegin, -item.queryCount, plan_.runs[item.runBegin].position);
    };
    std::sort(order.begin(), order.end(), [&](int a, int b) { return keyOf(a) < keyOf(b); });
    colours_.resize(order.size());
    int tile = -1, chunk = 0;
    for (std::size_t i = 0; i < order.size(); ++i, ++chunk) {
      const abi::Item &item = plan_.items[order[i]];
      if (i == 0 || item.queryBegin != plan_.items[order[i - 1]].queryBegin ||
          item.queryCount != plan_.items[order[i - 1]].queryCount) {
        ++tile;
        chunk = 0;
      }
      const double hue = std::fmod(205 + 137.508 * chunk + 77 * tile, 360);
      const int depth = plan_.runs[item.runBegin].depth;
      colours_[order[i]] = {hue, depth % 2 == 0 ? 0.76 : 0.64};
    }
  }
  std::string colourOf(int item) const { return Svg::colour(colours_[item].hue, 0.62, colours_[item].light); }
  /// Of the line around it.
  std::string edgeOf(int item) const {
    return Svg::colour(colours_[item].hue, 0.62, colours_[item].light - 0.3);
  }

  double nodeX(int node) const { return columns_[report_.tree.nodes()[node].depth].x; }
  double nodeWidth(int node) const {
    const tree::Node &facts = report_.tree.nodes()[node];
    const Column &column = columns_[facts.depth];
    return column.mostTokens == 0 ? 0 : std::max(1.0, column.width * facts.tokens / column.mostTokens);
  }
  double rowY(int query) const { return treeY_ + rowHeight_ * std::min(query, shownQueries_); }

  void drawTree() {
    y_ += 28;
    drawColumnHeads();
    treeY_ = y_ + 6;
    drawRowNames();
    if (!report_.facts.reach.isAll())
      drawUnread();
    for (std::size_t i = 0; i < plan_.items.size(); ++i)
      drawItem(static_cast<int>(i));
    if (hides())
      drawHidden();
    for (std::size_t node = 0; node < readers_.size(); ++node)
      if (readers_[node].end > 0 && readers_[node].begin < shownQueries_)
        drawNode(static_cast<int>(node));
    for (const Label &label : itemLabels_)
      if (takeRoom(label.box))
        svg_.text(label.box.x, label.box.y + label.box.height - 2, label.text,
                  {11, "#333", "start", false, false, true});
    y_ = treeY_ + rowHeight_ * shownQueries_;
    if (shownQueries_ < plan_.queryCount())
      say(12, kFaint,
          "The first " + withSeparators(shownQueries_) + " of " + withSeparators(plan_.queryCount()) +
              " queries are drawn.");
    if (unread_ > 0)
      say(12, kFaint,
          counted(unread_, "node that no query sees is", "nodes that no query sees are") + " left out.");
  }

  void drawColumnHeads() {
    double free = 0;
    for (std::size_t depth = 0; depth < columns_.size(); ++depth) {
      const Column &column = columns_[depth];
      const std::string number = std::to_string(depth);
      const double room = column.width - 4; // or the next one has no place
      std::string text = "depth " + number + ", to " + counted(column.mostTokens, "token", "tokens");
      if (Svg::widthOf(text, 11) > room)
        text = "depth " + number;
      if (Svg::widthOf(text, 11) > room)
        text = number;
      if (column.x < free)
        continue;
      svg_.text(column.x, y_, text, {11, kFaint});
      free = column.x + Svg::widthOf(text, 11) + 4;
    }
    svg_.text(kMargin, y_, "query", {11, kFaint});
  }

  void drawRowNames() {
    const int step = std::max(1, static_cast<int>(std::ceil(15 / rowHeight_)));
    for (int i = 0; i < shownQueries_; i += step)
      svg_.text(kMargin + kGutter - 10, rowY(i) + std::min(rowHeight_ / 2 + 4, 11.0), std::to_string(i),
                {11, kFaint, "end"});
  }

  void drawItem(int index) {
    const abi::Item &item = plan_.items[index];
    if (item.queryBegin >= shownQueries_)
      return;
    const std::string what = "item " + std::to_string(index) + ": " +
                             counted(item.tokens, "token", "tokens") + ", " +
                             counted(item.queryCount, "query", "queries") +
                             (item.partialBegin < 0 ? ", writes outputs" : ", writes partials");
    svg_.raw("<g class=\"i\">");
    for (int r = item.runBegin; r < item.runBegin + item.runCount; ++r)
      drawRun(index, item, r, what);
    svg_.raw("</g>\n");
  }

  void drawRun(int index, const abi::Item &item, int r, const std::string &what) {
    const abi::Run &run = plan_.runs[r];
    const int node = report_.nodeOfRun[r];
    const tree::Node &facts = report_.tree.nodes()[node];
    const int begin = run.position - facts.position;
    const double perToken = nodeWidth(node) / facts.tokens;
    const double x = nodeX(node) + perToken * begin, width = std::max(0.8, perToken * run.tokens);
    const double y = rowY(item.queryBegin + run.queryBegin);
    const double height = rowY(item.queryBegin + run.queryEnd) - y;
    if (height <= 0)
      return;
    const std::string edge =
        height >= 3 && width >= 3 ? " stroke=\"" + edgeOf(index) + "\" stroke-width=\"0.8\"" : "";
    const auto fill = [&](const std::string &attributes, const std::string &title) {
      if (run.slope == 0)
        return svg_.rect(x, y, width, height, attributes, title);
      // Down to the first reader of the last token that is drawn.
      const int first = item.queryBegin + run.queryBegin,
                tokens = std::min(run.tokens, shownQueries_ - first);
      const double right = x + perToken * tokens;
      svg_.polygon({{x, y}, {right, rowY(first + tokens)}, {right, y + height}, {x, y + height}}, attributes,
                   title);
    };
    fill("fill=\"" + colourOf(index) + "\"" + edge,
         what + "; tokens " + withSeparators(begin) + " to " + withSeparators(begin + run.tokens - 1) +
             " of " + report_.nodeName(node) + (run.slope == 0 ? "" : ", each from its own query on"));
    if (item.partialBegin >= 0 && height >= 3 && width >= 3)
      fill("fill=\"url(#partial)\" pointer-events=\"none\"", "");
    if (run.slope != 0)
      return;
    for (const std::string &name : {"item " + std::to_string(index), std::to_string(index)})
      if (const double length = Svg::widthOf(name, 11); width > length + 8 && height >= 16) {
        itemLabels_.push_back({name, {x + width - 5 - length, y + height - 17, length, 13}});
        return;
      }
  }

  /// What no item covers afterwards is hidden from all.
  void drawUnread() {
    for (std::size_t node = 0; node < readers_.size(); ++node)
      if (readers_[node].end > 0 && readers_[node].begin < shownQueries_) {
        const double y = rowY(readers_[node].begin);
        svg_.rect(nodeX(static_cast<int>(node)), y, nodeWidth(static_cast<int>(node)),
                  rowY(readers_[node].end) - y, "fill=\"url(#hidden)\"", "hidden by the mask");
      }
  }

  void drawHidden() {
    const auto perToken = [&](int node) { return nodeWidth(node) / report_.tree.nodes()[node].tokens; };
    const HiddenLimits limits{
        .mostQueries = shownQueries_,
        .mostParts = 4000,
        .mostQuestions = 4'000'000,
        // One for each pixel of its width.
        .step = [&](int node) { return std::max(1, static_cast<int>(1 / std::max(perToken(node), 1e-6))); }};
    for (const HiddenPart &part : hiddenParts(report_, limits))
      svg_.rect(nodeX(part.node) + perToken(part.node) * part.from, rowY(part.queryBegin),
                perToken(part.node) * (part.to - part.from), rowY(part.queryEnd) - rowY(part.queryBegin),
                "fill=\"url(#hidden)\" fill-opacity=\"0.85\" pointer-events=\"none\"");
  }

  void drawNode(int node) {
    const tree::Node &facts = report_.tree.nodes()[node];
    const double x = nodeX(node), width = nodeWidth(node);
    const double y = rowY(readers_[node].begin), height = rowY(readers_[node].end) - y;
    if (width <= 0 || height < 3)
      return;
    svg_.rect(x, y, width, height,
              "fill=\"none\" stroke=\"#444\" stroke-width=\"" + std::string(height < 8 ? "0.4" : "0.9") +
                  "\" pointer-events=\"none\"");
    const std::string shortName = report_.nodeName(node);
    for (const std::string &text : {shortName + ": " + counted(facts.tokens, "token", "tokens"),
                                    shortName + ": " + withSeparators(facts.tokens), shortName}) {
      const double length = Svg::widthOf(text, 12) + 6;
      const double base = y + std::min(14.0, height / 2 + 4.5);
      if (length <= width && height >= 13 && takeRoom({x + 4, base - 11, length - 6, 13}))
        return svg_.text(x + 4, base, text, {12, kInk, "start", true, false, true});
      if (length <= height && width >= 13 &&
          takeRoom({x + width / 2 - 7, y + height - length + 2, 13, length - 6}))
        return svg_.text(x + width / 2 + 4.5, y + height - 4, text, {12, kInk, "start", true, true, true});
    }
  }

  void drawLoads() {
    const Balance &balance = report_.balance;
    const auto blocks = static_cast<int>(balance.load.size());
    const auto idle = std::count(balance.load.begin(), balance.load.end(), 0.0);
    y_ += 44;
    svg_.text(kMargin, y_, "Load of each of " + counted(blocks, "block", "blocks"),
              {16, kInk, "start", true});
    svg_.text(kMargin + 260, y_,
              "largest " + rounded(balance.mostLoad, 1) + " µs, mean " + rounded(balance.meanLoad, 1) +
                  " µs: " + rounded(balance.maxOverMean(), 2) + " times" +
                  (idle > 0 ? "; " + counted(idle, "block has", "blocks have") + " nothing to do" : ""),
              {13, kFaint});
    const double top = y_ + 16, left = kMargin + kGutter, right = kWidth - kMargin;
    const double perUs = balance.mostLoad > 0 ? kLoadHeight / balance.mostLoad : 0;
    const double pitch = (right - left) / blocks, width = std::min(pitch * (pitch > 4 ? 0.86 : 1.0), 40.0);
    const auto heightOf = [&](double us) { return us * perUs; };
    const bool drawsUnits = balance.units.size() <= static_cast<std::size_t>(kMostUnits);
    for (int b = 0; b < blocks; ++b) {
      const double x = left + pitch * b;
      if (!drawsUnits) {
        svg_.rect(x, top + kLoadHeight - heightOf(balance.load[b]), width, heightOf(balance.load[b]),
                  "fill=\"#8aa9c8\"");
        continue;
      }
      double below = 0;
      for (int u = balance.unitBegin[b]; u < balance.unitBegin[b + 1]; ++u) {
        const int item = balance.units[u] / report_.facts.kvHeads;
        const double height = heightOf(report_.model.unitUs(plan_, plan_.items[item]));
        below += height;
        svg_.rect(x, top + kLoadHeight - below, width, height,
                  "fill=\"" + colourOf(item) + "\" stroke=\"white\" stroke-width=\"0.4\"",
                  "block " + std::to_string(b) + ", item " + std::to_string(item));
      }
    }
    svg_.line(left, top + kLoadHeight, right, top + kLoadHeight, "stroke=\"#444\"");
    const double mean = top + kLoadHeight - heightOf(balance.meanLoad);
    svg_.line(left, mean, right, mean, "stroke=\"#222\" stroke-dasharray=\"5 4\"");
    svg_.text(left - 8, mean + 4, "mean", {11, kFaint, "end"});
    svg_.text(left - 8, top + kLoadHeight + 4, "0", {11, kFaint, "end"});
    if (mean - top > 14)
      svg_.text(left - 8, top + 8, rounded(balance.mostLoad, 1) + " µs", {11, kFaint, "end"});
    y_ = top + kLoadHeight + 18;
    svg_.text(left, y_, drawsUnits ? "blocks, each with its items in their colours" : "blocks", {11, kFaint});
  }

  const PlanReport &report_;
  const Plan &plan_;
  Svg svg_;
  std::vector<Column> columns_;
  std::vector<Readers> readers_;  ///< by node
  std::vector<Colour> colours_;   ///< by item
  std::vector<Label> itemLabels_; ///< drawn where nodes' names leave room
  std::vector<Box> taken_;        ///< by labels
  int unread_ = 0, shownQueries_ = 0;
  double rowHeight_ = 1, treeY_ = 0;
  double y_ = 0; ///< of what was drawn last
};

} // namespace

std::string drawPlan(const PlanReport &report) { return Picture(report).draw(); }

} // namespace deft::plan
