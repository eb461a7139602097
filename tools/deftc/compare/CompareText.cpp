#include "tools/deftc/compare/CompareText.h"

#include "tools/deftc/common/Numbers.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iomanip>
#include <ostream>

namespace deft::cli {

using nlohmann::json;

namespace {

std::string shortMicros(double us) { return rounded(us, us < 100 ? 1 : 0); }

std::string partitionText(const CompareRow &row) {
  return row.asked == row.partition || row.partition.empty() ? row.asked : row.asked + ": " + row.partition;
}

std::string nameOf(const CompareRow &row) {
  return std::string(row.isTuned ? "tuned" : "untuned") + (row.isChosen ? " choice" : "");
}

/// Half of what the rounds differ by, in percent.
double spreadOf(const CompareRow &row) {
  return row.medianUs > 0 ? 50 * (row.mostUs - row.leastUs) / row.medianUs : 0;
}

using Rows = std::vector<const CompareRow *>;

const CompareRow *fastestOf(const Rows &rows) {
  const CompareRow *best = nullptr;
  for (const CompareRow *row : rows)
    if (row->medianUs > 0 && (!best || row->medianUs < best->medianUs))
      best = row;
  return best;
}

/// What `deftc run` takes for the spec: the tuned choice, else the untuned one.
const CompareRow *takenOf(const Rows &rows, const std::string &spec) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const CompareRow *row) {
    return row->spec == spec && row->isChosen && row->medianUs > 0;
  });
  return found == rows.end() ? nullptr : *found;
}

/// Whether the difference may be noise: the rounds of both overlap.
bool overlap(const CompareRow &a, const CompareRow &b) {
  return a.leastUs <= b.mostUs && b.leastUs <= a.mostUs;
}

std::string resultText(const Rows &rows) {
  const CompareRow *best = fastestOf(rows);
  if (!best)
    return "none of them can be run";
  std::string text = "fastest: " + best->spec + ", " + (best->isTuned ? "tuned" : "untuned") +
                     ", partition " + partitionText(*best) + ", " + shortMicros(best->medianUs) + " us";
  const CompareRow *taken = takenOf(rows, best->spec);
  if (taken == best)
    return text + "; `deftc run` uses it";
  if (!taken)
    return text;
  const double more = 100 * (taken->medianUs / best->medianUs - 1);
  return text + "; the choice of `deftc run` (" + partitionText(*taken) + ") takes " + rounded(more, 1) +
         " % longer" + (overlap(*best, *taken) ? ", which may be noise" : "");
}

std::string checkText(const CompareRow &row) {
  if (!row.check)
    return "";
  return row.check->passed() ? "  right" : "  WRONG: " + reference::explainFailure(*row.check);
}

void printRows(const Rows &rows, std::ostream &out) {
  std::size_t specWidth = 4, partitionWidth = 9;
  for (const CompareRow *row : rows) {
    specWidth = std::max(specWidth, row->spec.size());
    partitionWidth = std::max(partitionWidth, partitionText(*row).size());
  }
  const auto head = [&](const std::string &spec, const std::string &config, const std::string &partition) {
    out << "  " << std::left << std::setw(static_cast<int>(specWidth)) << spec << "  " << std::setw(14)
        << config << "  " << std::setw(static_cast<int>(partitionWidth)) << partition << std::right;
  };
  head("spec", "config", "partition");
  out << std::setw(8) << "chunk" << std::setw(8) << "items" << std::setw(13) << "tokens read" << std::setw(10)
      << "plan us" << std::setw(10) << "us" << std::setw(9) << "+- %" << std::setw(9) << "of best\n";
  const CompareRow *best = fastestOf(rows);
  for (const CompareRow *row : rows) {
    head(row->spec, nameOf(*row), partitionText(*row));
    if (!row->fault.empty()) {
      out << "  not run: " << row->fault << '\n';
      continue;
    }
    out << std::setw(8) << row->chunkTokens << std::setw(8) << withSeparators(row->items) << std::setw(13)
        << withSeparators(row->itemTokens) << std::setw(10) << shortMicros(row->planUs) << std::setw(10)
        << shortMicros(row->medianUs) << std::setw(9) << rounded(spreadOf(*row), 1) << std::setw(8)
        << rounded(row->medianUs / best->medianUs, 2) << (row == best ? " *" : "") << checkText(*row) << '\n';
  }
}

} // namespace

void printCompare(const CompareReport &report, std::ostream &out) {
  for (const Rows &rows : report.byTree()) {
    out << rows.front()->tree << " on " << report.backend << " (" << report.device << "), the median of "
        << counted(rows.front()->rounds, "round", "rounds") << " in turn\n"
        << resultText(rows) << "\n\n";
    printRows(rows, out);
    out << '\n';
  }
  for (const std::string &note : report.notes)
    out << note << '\n';
}

json toJson(const CompareReport &report) {
  json rows = json::array();
  for (const CompareRow &row : report.rows) {
    rows.push_back({{"spec", row.spec},
                    {"tree", row.tree},
                    {"tuned", row.isTuned},
                    {"chosen", row.isChosen},
                    {"asked", row.asked},
                    {"partition", row.partition},
                    {"chunk_tokens", row.chunkTokens},
                    {"items", row.items},
                    {"item_tokens", row.itemTokens},
                    {"partial_slots", row.partialSlots},
                    {"plan_us", row.planUs},
                    {"rounds", row.rounds},
                    {"median_us", row.medianUs},
                    {"least_us", row.leastUs},
                    {"most_us", row.mostUs}});
    rows.back()["fault"] = row.fault.empty() ? json(nullptr) : json(row.fault);
    rows.back()["right"] = row.check ? json(row.check->passed()) : json(nullptr);
  }
  return {{"format", "deftc-compare"}, {"version", 1},
          {"backend", report.backend}, {"device", report.device},
          {"rounds", report.rounds()}, {"rows", std::move(rows)},
          {"notes", report.notes}};
}

} // namespace deft::cli
