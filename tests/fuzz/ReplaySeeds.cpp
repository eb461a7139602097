// Stands in for libFuzzer where there is none: gives a target every file that the fuzzer would begin with,
// once.
//   X_replay FILE_OR_FOLDER...     aborts where the target does; exit code 1 where there was nothing to give
//   it
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size);

namespace fs = std::filesystem;

namespace {

void replay(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t *>(bytes.data()), bytes.size());
}

} // namespace

int main(int count, char **arguments) {
  int replayed = 0;
  for (int i = 1; i < count; ++i) {
    if (fs::is_regular_file(arguments[i])) {
      replay(arguments[i]);
      ++replayed;
      continue;
    }
    for (const auto &entry : fs::recursive_directory_iterator(arguments[i]))
      if (entry.is_regular_file()) {
        replay(entry.path());
        ++replayed;
      }
  }
  std::printf("%d files, none broken\n", replayed);
  return replayed > 0 ? 0 : 1;
}
