// Any bytes as a journal of a tuning session, each line with its right sum where it is one: it is read, a
// report is made of it, and a session goes on with it.
#include "compiler/support/Hash.h"
#include "tests/fuzz/Require.h"
#include "tuner/report/Page.h"
#include "tuner/report/SessionData.h"
#include "tuner/session/Journal.h"

#include <filesystem>
#include <fstream>
#include <string_view>
#include <unistd.h>

using namespace deft;
using fuzz::require;
using nlohmann::json;

namespace {

/// A folder of this process's own, which goes with it.
class Folder {
public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("deft-fuzz-" + std::to_string(::getpid()))) {
    std::filesystem::create_directory(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  /// Nothing but the file is left in it.
  std::string with(std::string_view text) const {
    for (const auto &entry : std::filesystem::directory_iterator(path_))
      std::filesystem::remove(entry.path());
    const std::string file = (path_ / "journal.jsonl").string();
    require(std::ofstream(file, std::ios::binary)
                .write(text.data(), static_cast<std::streamsize>(text.size()))
                .flush()
                .good(),
            "the journal cannot be written");
    return file;
  }

private:
  std::filesystem::path path_;
};

/// Lines that are an event, or an event with a sum, get the right sum.
std::string withRightSums(std::string_view text) {
  std::string sealed;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const json read = json::parse(line, nullptr, false);
    const json event =
        read.is_object() && read.contains("event") && read["event"].is_object() ? read["event"] : read;
    if (!event.is_object()) {
      sealed.append(line) += '\n';
      continue;
    }
    const std::string dumped = event.dump(-1, ' ', false, json::error_handler_t::replace);
    sealed += R"({"sum":")" + support::sha256Hex(dumped).substr(0, 8) + R"(","event":)" + dumped + "}\n";
  }
  return sealed;
}

void read(const std::string &text) {
  static const Folder folder;
  const std::vector<json> events = session::parseJournal(text);
  if (events.empty())
    return;
  if (const auto session = report::sessionOf(events, "fuzz.jsonl"))
    (void)report::renderPage({*session});
  const std::string file = folder.with(text);
  (void)report::readSession(file);
  // The same session goes on; one of another identity is refused.
  if (auto journal = session::Journal::open(file, events.front(), /*isFresh=*/false)) {
    journal->write({{"event", "resumed"}, {"at", "now"}});
    require(journal->warning().empty(), journal->warning());
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const std::string text(reinterpret_cast<const char *>(data), size);
  read(text);
  if (const std::string sealed = withRightSums(text); sealed != text)
    read(sealed);
  return 0;
}
