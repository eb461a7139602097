#include "tools/deftc/emit/Disassemble.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace deft::cli {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

namespace fs = std::filesystem;

std::optional<std::string> programInFolders() {
  std::vector<std::string> folders;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char *home = std::getenv(variable))
      folders.push_back(std::string(home) + "/bin");
  const char *const given = std::getenv("PATH");
  const std::string path = given ? given : "";
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    folders.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  folders.push_back("/usr/local/cuda/bin");
  for (const std::string &folder : folders)
    if (std::string file = folder + "/nvdisasm"; ::access(file.c_str(), X_OK) == 0)
      return file;
  return std::nullopt;
}

/// A file that is gone when this is.
class TemporaryFile {
public:
  explicit TemporaryFile(const std::string &bytes) {
    std::string pattern = (fs::temp_directory_path() / "deftc-XXXXXX").string();
    const int descriptor = ::mkstemp(pattern.data());
    if (descriptor < 0)
      return;
    path_ = pattern;
    isWhole_ = ::write(descriptor, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
    ::close(descriptor);
  }
  ~TemporaryFile() {
    std::error_code none;
    if (!path_.empty())
      fs::remove(path_, none);
  }
  TemporaryFile(const TemporaryFile &) = delete;
  TemporaryFile &operator=(const TemporaryFile &) = delete;

  bool isWhole() const { return isWhole_; }
  const std::string &path() const { return path_; }

private:
  std::string path_;
  bool isWhole_ = false;
};

Error failed(const std::string &what) {
  return {ErrorCode::Environment, what + ": " + std::strerror(errno), ""};
}

/// What the program prints; its messages go where ours go.
Result<std::string> outputOf(const std::string &program, const std::string &argument) {
  int ends[2];
  if (::pipe(ends) != 0)
    return failed("cannot make a pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  std::string words[] = {program, argument};
  char *argv[] = {words[0].data(), words[1].data(), nullptr};
  pid_t child = 0;
  const int code = ::posix_spawn(&child, program.c_str(), &actions, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (code != 0) {
    ::close(ends[0]);
    errno = code;
    return failed("cannot start `" + program + "`");
  }
  std::string text;
  char buffer[65536];
  for (ssize_t count; (count = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(count));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return Error{ErrorCode::Environment, "`" + program + "` could not read the cubin", ""};
  return text;
}

} // namespace

Result<std::string> findDisassembler() {
  auto program = programInFolders();
  if (!program)
    return Error{ErrorCode::Environment, "nvdisasm was not found",
                 "`pip install nvidia-cuda-nvdisasm` installs it; set CUDA_HOME to the folder nvidia/cu13 in "
                 "site-packages, or to a CUDA toolkit's, or emit --as cubin"};
  return std::move(*program);
}

Result<std::string> disassemble(const std::string &program, const std::string &cubin) {
  const TemporaryFile file(cubin);
  if (!file.isWhole())
    return failed("cannot write a temporary file");
  return outputOf(program, file.path());
}

} // namespace deft::cli
