#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace deft::module_cache {

/// A fresh folder, removed with all that is in it at the end.
class TestFolder {
public:
  TestFolder();
  ~TestFolder();
  TestFolder(const TestFolder &) = delete;
  TestFolder &operator=(const TestFolder &) = delete;
  std::string path(const std::string &name = {}) const { return name.empty() ? path_ : path_ + "/" + name; }

private:
  std::string path_;
};

std::string readText(const std::filesystem::path &path);
void writeText(const std::filesystem::path &path, const std::string &text);

/// Files and folders directly in `folder`, sorted.
std::vector<std::string> namesIn(const std::string &folder);

/// Runs `body` in a child process and returns its exit status; -1 when it died of a signal. Failed
/// expectations of the child are its own, so it must say by its result what went wrong.
int inChild(const std::function<int()> &body);

/// What a child returns when the machine does not allow the set-up of a test.
constexpr int kNotAllowed = 77;

/// In a child only: mounts a file system of `kilobytes` on `folder`, seen by this process alone.
bool mountSmallDisk(const std::string &folder, int kilobytes);
bool makeReadOnly(const std::string &folder);

} // namespace deft::module_cache
