// Any bytes as a recorded workload: what is read can be replayed, and each step's tree is written and read
// again unchanged.
#include "runtime/tree/TreeFile.h"
#include "tests/fuzz/Require.h"
#include "tuner/workload/RecordFile.h"
#include "tuner/workload/Workload.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace deft;
using fuzz::require;

namespace {

/// A folder of records, in which a file is a workload by its name.
class Folder {
public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "deft_records_XXXXXX").string();
    require(mkdtemp(pattern.data()) != nullptr, "no temporary folder");
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder &) = delete;
  Folder &operator=(const Folder &) = delete;

  const std::string &path() const { return path_; }
  void write(std::string_view text) const { std::ofstream(path_ + "/record.json", std::ios::binary) << text; }

private:
  std::string path_;
};

void replay(const std::string &name, const std::string &folder) {
  constexpr int kMostSteps = 24; // of millions that a small file may ask for
  auto workload = workload::make(name, 1, folder);
  if (!workload) { // too large for a tree, which is said
    require(workload.error().code != support::ErrorCode::Internal, "a bug: " + workload.error().message);
    return;
  }
  for (int step = 1;; ++step) {
    require(workload->step() == step, "a step that was left out");
    const std::string text = tree::formatTree({workload->tree(), {}});
    const auto again = tree::parseTreeDocument(text);
    require(again.ok(), again.ok() ? "" : "a step's tree is refused: " + again.error().message);
    if (step >= std::min(workload->steps(), kMostSteps))
      return;
    if (const auto next = workload->next(); !next) {
      require(next.error().code != support::ErrorCode::Internal, "a bug: " + next.error().message);
      return;
    }
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  static const Folder folder;
  const std::string_view text(reinterpret_cast<const char *>(data), size);
  const auto record = workload::parseRecordFile(text);
  if (!record) {
    require(!record.error().message.empty(), "an error without a message");
    return 0;
  }
  folder.write(text);
  if (std::holds_alternative<workload::RecordedTrees>(*record)) {
    replay("record", folder.path());
    replay("record:prune=1", folder.path());
  } else {
    replay("record:prompt=5", folder.path());
  }
  return 0;
}
