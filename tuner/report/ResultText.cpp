#include "tuner/report/ResultText.h"

#include "compiler/support/Numbers.h"

#include <algorithm>
#include <cmath>

namespace deft::report {

using support::counted;
using support::rounded;
using support::withSeparators;

namespace {

struct Counts {
  long long all = 0, done = 0, kept = 0, cut = 0, begun = 0;
  std::vector<double> gains, heldOut; ///< of classes with a tuned config
  long long candidates = 0, fewest = 0, most = 0;
};

Counts countsOf(const SessionData &session) {
  Counts counts;
  counts.all = std::ssize(session.classes);
  for (const ClassData &one : session.classes) {
    const auto tried = std::ssize(one.candidates);
    counts.begun += one.isBegun() ? 1 : 0;
    if (one.isBegun()) {
      counts.fewest = counts.candidates == 0 ? tried : std::min<long long>(counts.fewest, tried);
      counts.most = std::max<long long>(counts.most, tried);
      counts.candidates += tried;
    }
    if (!one.isDone())
      continue;
    ++counts.done;
    counts.cut += one.isCut ? 1 : 0;
    if (one.keepsDefault || one.gain <= 0) {
      ++counts.kept;
      continue;
    }
    counts.gains.push_back(one.gain);
    if (one.heldOutGain && *one.heldOutGain > 0)
      counts.heldOut.push_back(*one.heldOutGain);
  }
  return counts;
}

double geometricMean(const std::vector<double> &values) {
  double sum = 0;
  for (const double value : values)
    sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

std::string gainText(const Counts &counts) {
  if (counts.gains.empty())
    return "none has a config that is faster than the untuned one";
  std::string text = counted(std::ssize(counts.gains), "class has", "classes have") + " a tuned config, " +
                     rounded(geometricMean(counts.gains), 2) + " times as fast as the untuned one";
  if (counts.gains.size() > 1)
    text += " in the geometric mean (" +
            rounded(*std::min_element(counts.gains.begin(), counts.gains.end()), 2) + " to " +
            rounded(*std::max_element(counts.gains.begin(), counts.gains.end()), 2) + ")";
  if (!counts.heldOut.empty())
    text += ", on trees that were not searched on " + rounded(geometricMean(counts.heldOut), 2) + " times";
  if (counts.kept > 0)
    text += "; " + counted(counts.kept, "keeps", "keep") + " the untuned one";
  return text;
}

} // namespace

std::string resultText(const SessionData &session) {
  const Counts counts = countsOf(session);
  if (counts.all == 0)
    return "The session ended before its first class.";
  std::string text = counts.done == counts.all
                         ? (counts.all == 1 ? "The class is done: "
                                            : "All " + withSeparators(counts.all) + " classes are done: ")
                         : withSeparators(counts.done) + " of " +
                               counted(counts.all, "class is done: ", "classes are done: ");
  text += gainText(counts) + ".";
  const long long unfinished = counts.begun - counts.done, missing = counts.all - counts.begun;
  if (unfinished > 0)
    text += " " + counted(unfinished, "was", "were") + " begun and not finished.";
  if (missing > 0)
    text += " " + counted(missing, "was", "were") + " not begun.";
  if (counts.cut > 0)
    text += " " + counted(counts.cut, "search", "searches") +
            " ended early for lack of time: their entries count as near, not as exact.";
  if (counts.begun > 0)
    text += " " + counted(counts.candidates, "candidate", "candidates") + " came up, " +
            (counts.fewest == counts.most
                 ? withSeparators(counts.most)
                 : withSeparators(counts.fewest) + " to " + withSeparators(counts.most)) +
            " in a class.";
  return text;
}

} // namespace deft::report
