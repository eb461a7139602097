#include "tuner/session/DoneEvent.h"

#include "tuner/space/Space.h"

#include <nlohmann/json.hpp>

#include <sstream>

namespace deft::session {

using nlohmann::json;

json doneEvent(const ClassReport &report) {
  return {{"event", "done"},
          {"class", report.treeClass.text()},
          {"entry", config_cache::toJson(report.entry)},
          {"winner", space::configId(report.entry.config)},
          {"gain", report.gain},
          {"gain_error", report.gainError},
          {"held_out_gain", report.heldOutGain ? json(*report.heldOutGain) : json()},
          {"candidates", report.candidates},
          {"rejected", report.rejected},
          {"is_cut", !report.entry.isComplete},
          {"note", report.note}};
}

std::string resultText(const ClassReport &report) {
  std::ostringstream text;
  text.setf(std::ios::fixed);
  text.precision(2);
  text << report.treeClass.text() << ": ";
  if (report.entry.keepsDefault)
    text << "the untuned config stays: " << report.note;
  else
    text << report.gain << " times as fast as untuned"
         << (report.entry.onlyFor.empty() ? "" : ", only on trees like the given ones");
  if (!report.entry.isComplete)
    text << "; the search was cut short by its time budget";
  return text.str();
}

std::optional<ClassReport> reportOfDone(const json &done, config_cache::DeviceKey::Kind device) try {
  const auto entry = config_cache::entryFromJson(done.at("entry"), device);
  if (!entry)
    return std::nullopt;
  ClassReport report;
  report.treeClass = entry->treeClass;
  report.entry = *entry;
  // In older journals, entries have no `complete`.
  if (done.value("is_cut", false))
    report.entry.isComplete = false;
  report.isDone = report.isFromJournal = true;
  report.gain = done.value("gain", 1.0);
  report.gainError = done.value("gain_error", 0.0);
  if (const json &held = done.value("held_out_gain", json()); held.is_number())
    report.heldOutGain = held.get<double>();
  report.candidates = done.value("candidates", 0);
  report.rejected = done.value("rejected", 0);
  report.note = done.value("note", "");
  return report;
} catch (const json::exception &) { // whole, but nothing that deftc wrote
  return std::nullopt;
}

} // namespace deft::session
