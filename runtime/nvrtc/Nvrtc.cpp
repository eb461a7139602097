#include "runtime/nvrtc/Nvrtc.h"

#include "runtime/nvrtc/Templates.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <utility>

namespace deft::nvrtc {
namespace {

using support::Error;
using support::ErrorCode;
using support::Result;
namespace fs = std::filesystem;

/// The first version that knows every target and every option that is passed.
constexpr Version kOldest{12, 8};

/// Newest first.
constexpr const char *kFileNames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
/// Where a toolkit, a plain folder, and the registry's wheels (two generations of them) keep it.
constexpr const char *kSubfolders[] = {
    "", "lib64", "lib", "targets/x86_64-linux/lib", "nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"};

constexpr const char *kHint = "install the CUDA toolkit, or the wheel `nvidia-cuda-nvrtc` and set CUDA_HOME "
                              "to the folder that holds it";

void addFilesIn(const std::string &folder, std::vector<std::string> &paths) {
  std::error_code ignored;
  for (const char *subfolder : kSubfolders)
    for (const char *name : kFileNames) {
      const fs::path file = fs::path(folder) / subfolder / name;
      if (fs::exists(file, ignored))
        paths.push_back(file.string());
    }
}

/// The folder, if there is one, in which this code's own package lies beside others of Python: three above
/// the library or program, as site-packages/deft/lib/libdeft.so has it.
std::string packagesFolder() {
  Dl_info self{};
  if (!::dladdr(reinterpret_cast<const void *>(&packagesFolder), &self) || !self.dli_fname)
    return {};
  std::error_code ignored;
  const fs::path file = fs::canonical(self.dli_fname, ignored);
  const fs::path package = file.parent_path().parent_path();
  return package.filename() == "deft" ? package.parent_path().string() : std::string();
}

} // namespace

/// NVRTC's C interface, declared by hand so that building needs no toolkit. 0 is success.
struct Nvrtc::Functions {
  using Program = void *;
  int (*version)(int *major, int *minor);
  const char *(*getErrorString)(int status);
  int (*getNumSupportedArchs)(int *count);
  int (*getSupportedArchs)(int *archs);
  int (*createProgram)(Program *, const char *source, const char *name, int headerCount,
                       const char *const *headers, const char *const *includeNames);
  int (*destroyProgram)(Program *);
  int (*compileProgram)(Program, int optionCount, const char *const *options);
  int (*getProgramLogSize)(Program, std::size_t *);
  int (*getProgramLog)(Program, char *);
  int (*getCubinSize)(Program, std::size_t *);
  int (*getCubin)(Program, char *);
  int (*getPtxSize)(Program, std::size_t *);
  int (*getPtx)(Program, char *);

  bool loadFrom(void *library) {
    bool complete = true;
    const auto load = [&](auto &function, const char *name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
      complete = complete && function != nullptr;
    };
    load(version, "nvrtcVersion");
    load(getErrorString, "nvrtcGetErrorString");
    load(getNumSupportedArchs, "nvrtcGetNumSupportedArchs");
    load(getSupportedArchs, "nvrtcGetSupportedArchs");
    load(createProgram, "nvrtcCreateProgram");
    load(destroyProgram, "nvrtcDestroyProgram");
    load(compileProgram, "nvrtcCompileProgram");
    load(getProgramLogSize, "nvrtcGetProgramLogSize");
    load(getProgramLog, "nvrtcGetProgramLog");
    load(getCubinSize, "nvrtcGetCUBINSize");
    load(getCubin, "nvrtcGetCUBIN");
    load(getPtxSize, "nvrtcGetPTXSize");
    load(getPtx, "nvrtcGetPTX");
    return complete;
  }
};

std::vector<std::string> compilerOptions(std::string_view arch, const CompileOptions &options) {
  std::vector<std::string> list{
      "--gpu-architecture=" + std::string(arch),
      "--std=c++20",
      "--no-source-include", // only the embedded headers, never the current folder
      "--ptxas-options=-v",  // the resource report
      "--diag-suppress=177", // a hook that the variant does not use
      "--frandom-seed=deft", // names of unnamed namespaces, else drawn anew by each process
  };
  if (options.lineInfo)
    list.push_back("--generate-line-info");
  return list;
}

std::vector<std::string> searchPaths(const SearchOptions &options) {
  std::vector<std::string> paths;
  if (!options.path.empty()) {
    std::error_code ignored;
    if (fs::is_directory(options.path, ignored))
      addFilesIn(options.path, paths);
    else
      paths.push_back(options.path);
    return paths;
  }
  if (*DEFT_NVRTC_DIR)
    addFilesIn(DEFT_NVRTC_DIR, paths);
  if (const std::string folder = packagesFolder(); !folder.empty())
    addFilesIn(folder, paths);
  for (const char *name : kFileNames)
    paths.push_back(name); // bare: the loader looks it up
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char *folder = std::getenv(variable); folder && *folder)
      addFilesIn(folder, paths);
  addFilesIn("/usr/local/cuda", paths);
  return paths;
}

Nvrtc::Nvrtc(std::unique_ptr<Functions> functions, std::string path, Version version)
    : functions_(std::move(functions)), path_(std::move(path)), version_(version) {}

// The library stays loaded: it starts threads and registers exit handlers that do not survive dlclose.
Nvrtc::~Nvrtc() = default;

Result<std::shared_ptr<const Nvrtc>> Nvrtc::load(const SearchOptions &options) {
  std::string lastError, tooOld;
  for (const std::string &path : searchPaths(options)) {
    void *library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      lastError = ::dlerror();
      continue;
    }
    auto functions = std::make_unique<Functions>();
    Version version;
    const bool isNvrtc =
        functions->loadFrom(library) && functions->version(&version.major, &version.minor) == 0;
    if (!isNvrtc || std::pair(version.major, version.minor) < std::pair(kOldest.major, kOldest.minor)) {
      lastError = "`" + path + "` is " + (isNvrtc ? "NVRTC " + version.text() : "not NVRTC") + "; version " +
                  kOldest.text() + " or later is needed";
      if (isNvrtc)
        tooOld = lastError;
      ::dlclose(library);
      continue;
    }
    Dl_info info{};
    std::string file = path;
    if (::dladdr(reinterpret_cast<void *>(functions->version), &info) && info.dli_fname)
      file = info.dli_fname;
    // NVRTC opens its builtins by their bare name when it compiles. The loader's path does not lead to a
    // wheel or a private copy, but a library that is loaded already is found. It stays loaded, as NVRTC does.
    const std::string builtins = "libnvrtc-builtins.so." + version.text();
    ::dlopen((fs::path(file).parent_path() / builtins).c_str(), RTLD_NOW | RTLD_LOCAL);
    return std::shared_ptr<const Nvrtc>(new Nvrtc(std::move(functions), std::move(file), version));
  }
  if (!options.path.empty())
    return Error{ErrorCode::Environment,
                 "no NVRTC at `" + options.path + "`" + (lastError.empty() ? "" : ": " + lastError), kHint};
  if (!tooOld.empty())
    return Error{ErrorCode::Environment, "NVRTC, the CUDA run-time compiler, is too old: " + tooOld, kHint};
  return Error{ErrorCode::Environment, "NVRTC, the CUDA run-time compiler, was not found", kHint};
}

bool Nvrtc::supports(std::string_view arch) const {
  int count = 0;
  if (functions_->getNumSupportedArchs(&count) != 0 || count <= 0)
    return false;
  std::vector<int> archs(count);
  if (functions_->getSupportedArchs(archs.data()) != 0)
    return false;
  // The list has the plain numbers; an "a" needs its own number to be there.
  const std::string_view digits = arch.substr(arch.find('_') + 1);
  int number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return std::find(archs.begin(), archs.end(), number) != archs.end();
}

Result<Compiled> Nvrtc::compile(const std::string &fileName, const std::string &source, std::string_view arch,
                                const CompileOptions &options) const {
  if (!supports(arch))
    return Error{ErrorCode::Environment, "NVRTC " + version_.text() + " does not know " + std::string(arch),
                 "use a newer CUDA toolkit"};
  std::vector<std::string> headerTexts; // views are not terminated
  std::vector<std::string> headerNames;
  for (const TemplateHeader &header : reachedHeaders(source)) {
    headerTexts.emplace_back(header.text);
    headerNames.emplace_back(header.name);
  }
  const auto pointers = [](const std::vector<std::string> &strings) {
    std::vector<const char *> list;
    for (const std::string &string : strings)
      list.push_back(string.c_str());
    return list;
  };
  const auto texts = pointers(headerTexts), names = pointers(headerNames);
  std::vector<std::string> optionTexts = compilerOptions(arch, options);
  // From 12.9 on NVRTC has a cache of its own, which keeps no resource reports; deft has one that does.
  if (std::pair(version_.major, version_.minor) >= std::pair(12, 9))
    optionTexts.emplace_back("--no-cache");
  const auto optionList = pointers(optionTexts);

  Functions::Program program = nullptr;
  if (int status = functions_->createProgram(&program, source.c_str(), fileName.c_str(),
                                             static_cast<int>(texts.size()), texts.data(), names.data()))
    return Error{ErrorCode::Internal,
                 std::string("NVRTC refused the program: ") + functions_->getErrorString(status),
                 {}};
  struct Guard {
    const Functions &functions;
    Functions::Program program;
    ~Guard() { functions.destroyProgram(&program); }
  } guard{*functions_, program};

  const int status =
      functions_->compileProgram(program, static_cast<int>(optionList.size()), optionList.data());
  const auto read = [&](auto sizeOf, auto bytesOf) {
    std::size_t size = 0;
    std::string bytes;
    if (sizeOf(program, &size) == 0 && size > 0) {
      bytes.resize(size);
      if (bytesOf(program, bytes.data()) != 0)
        bytes.clear();
    }
    return bytes;
  };
  Compiled compiled;
  compiled.log = read(functions_->getProgramLogSize, functions_->getProgramLog);
  while (!compiled.log.empty() && compiled.log.back() == '\0')
    compiled.log.pop_back();
  if (status != 0)
    return Error{ErrorCode::Internal,
                 "NVRTC " + version_.text() + " rejected `" + fileName + "` for " + std::string(arch) + " (" +
                     functions_->getErrorString(status) + ")\n" + compiled.log,
                 "this is a bug of deftc: a spec that passes `check` must compile"};
  compiled.cubin = read(functions_->getCubinSize, functions_->getCubin);
  if (compiled.cubin.empty())
    return Error{ErrorCode::Internal, "NVRTC made no cubin for `" + fileName + "`", {}};
  if (options.ptx) {
    compiled.ptx = read(functions_->getPtxSize, functions_->getPtx);
    while (!compiled.ptx.empty() && compiled.ptx.back() == '\0')
      compiled.ptx.pop_back();
  }
  compiled.resources = parseResources(compiled.log);
  return compiled;
}

} // namespace deft::nvrtc
