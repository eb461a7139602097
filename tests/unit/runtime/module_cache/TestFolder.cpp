#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sched.h>
#include <sstream>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

namespace deft::module_cache {

namespace fs = std::filesystem;

TestFolder::TestFolder() {
  std::string path = (fs::temp_directory_path() / "deft-test-XXXXXX").string();
  if (::mkdtemp(path.data()))
    path_ = path;
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string readText(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void writeText(const fs::path &path, const std::string &text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

std::vector<std::string> namesIn(const std::string &folder) {
  std::vector<std::string> names;
  for (const auto &entry : fs::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

int inChild(const std::function<int()> &body) {
  const pid_t child = ::fork();
  if (child == 0)
    ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool mountSmallDisk(const std::string &folder, int kilobytes) {
  const bool isRoot = ::geteuid() == 0;
  if (::unshare(isRoot ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) != 0)
    return false;
  // Without this the mount would be seen outside.
  if (isRoot && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return false;
  const std::string options = "mode=0700,size=" + std::to_string(kilobytes) + "k";
  return ::mount("none", folder.c_str(), "tmpfs", 0, options.c_str()) == 0;
}

bool makeReadOnly(const std::string &folder) {
  return ::mount("none", folder.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) == 0;
}

} // namespace deft::module_cache
