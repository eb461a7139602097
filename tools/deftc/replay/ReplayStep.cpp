#include "tools/deftc/replay/ReplayStep.h"

#include "compiler/support/Render.h"
#include "runtime/capture/StepFile.h"
#include "runtime/exec/Params.h"
#include "tools/deftc/common/ConfigOptions.h"
#include "tools/deftc/common/Numbers.h"
#include "tools/deftc/common/ProgramInput.h"
#include "tools/deftc/common/Words.h"
#include "tools/deftc/run/StepInputs.h"

#include <algorithm>
#include <filesystem>
#include <optional>

namespace deft::cli {

namespace fs = std::filesystem;

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

/// Imports by their names, as the file has them.
spec::ImportResolver importsOf(const std::vector<package::SpecFile> &files) {
  return [&files](const std::string &, const std::string &path) -> Result<spec::ImportedFile> {
    const std::string name = fs::path(path).filename().string();
    for (const std::string &meant : {name, "<deftc>/" + path})
      for (const package::SpecFile &file : files)
        if (file.name == meant)
          return spec::ImportedFile{file.name, file.text};
    return Error{ErrorCode::Diagnostics, "the captured step does not hold `" + path + "`", ""};
  };
}

Result<program::Program> programOf(const std::string &path, const capture::Step &step) {
  support::DiagnosticSink sink;
  auto loaded =
      program::checkSpec({step.spec.front().name, step.spec.front().text}, importsOf(step.spec), sink);
  if (sink.hasErrors()) {
    std::string found = support::renderDiagnostics(loaded->sources, sink);
    while (found.ends_with('\n'))
      found.pop_back();
    return Error{ErrorCode::Diagnostics, "this deftc does not accept the spec of `" + path + "`\n" + found,
                 "deftc " + step.version + " captured it"};
  }
  return program::Program::fromSpec(std::move(loaded), step.attention, "the file says");
}

/// The value as the parameter takes it; none: it is of another type, or has another number of values.
bool fits(const spec::Variant &variant, const spec::Param &param, const exec::ParamValue &value) {
  const bool isF32 = param.type == spec::ScalarType::F32;
  const int length = exec::paramLength(variant, param);
  const bool hasLength = param.isSizedByRun() || exec::countOf(value) == static_cast<std::size_t>(length);
  return hasLength && (isF32 ? value.i32.empty() : value.f32.empty());
}

bool isAssigned(const std::vector<std::string> &assignments, const std::string &name) {
  return std::any_of(assignments.begin(), assignments.end(),
                     [&](const std::string &one) { return one.starts_with(name + "="); });
}

std::string timeText(const std::optional<double> &us) {
  return us ? rounded(*us, 1) + " us" : std::string("not timed");
}

std::string kindText(const capture::RunFacts &run) {
  switch (run.kind) {
  case capture::RunKind::Full:
    return "the full attention";
  case capture::RunKind::Selecting:
    return "the attention that selects " + counted(run.budget, "token", "tokens") + " a list";
  case capture::RunKind::Sparse:
    return "the attention over lists of " + counted(run.budget, "token", "tokens");
  }
  return {};
}

std::string momentText(const capture::Step &step) {
  switch (step.moment) {
  case capture::Moment::Run:
    return "after its first run";
  case capture::Moment::Upload:
    return "when its plan was uploaded for a captured graph";
  case capture::Moment::Call:
    return "when the program asked for it, between replays";
  }
  return {};
}

void addLine(std::string &text, const char *name, const std::string &what) {
  std::string label = name;
  label.resize(10, ' ');
  text += label + what + "\n";
}

} // namespace

Result<ReplayStep> openStep(Context &context, const std::string &path, bool isRandom) {
  if (auto read = context.files.reads(path); !read)
    return read.error();
  auto step = capture::readStep(path);
  if (!step)
    return step.error();
  auto program = programOf(path, *step);
  if (!program)
    return program.error();
  if (const int own = program->variant().cache.pageSize; own != step->pageSize)
    return Error{ErrorCode::Diagnostics,
                 "`" + path + "`: `page_size` is " + std::to_string(step->pageSize) + ", its spec says " +
                     std::to_string(own),
                 ""};
  const auto refuse = [&](const Error &error) {
    return Error{error.code, "`" + path + "`: " + error.message, error.hint};
  };
  auto tree = capture::treeOf(*step);
  if (!tree)
    return refuse(tree.error());
  if (auto fits = checkRoom(program->variant(), tree->tokens(), tree->queries().size()); !fits)
    return fits.error();
  auto place = capture::placeStep(*step, *tree);
  if (!place)
    return refuse(place.error());
  std::string tensors;
  if (!isRandom && !step->tensors.empty()) {
    tensors = (fs::path(path).parent_path() / step->tensors).string();
    if (std::error_code none; !fs::is_directory(tensors, none))
      return Error{ErrorCode::Environment, "the tensors of `" + path + "` are not in `" + tensors + "`",
                   "--random runs it with other values"};
    for (const char *name : {"q.npy", "k.npy", "v.npy"})
      if (auto read = context.files.reads((fs::path(tensors) / name).string()); !read)
        return read.error();
  }
  return ReplayStep{
      path, std::move(*step), std::move(*program), std::move(*tree), std::move(*place), std::move(tensors)};
}

Result<std::vector<exec::ParamValue>> paramsOf(Context &context, const ReplayStep &step,
                                               const std::vector<std::string> &assignments) {
  const spec::Variant &variant = step.variant();
  if (auto read = readsParams(context, assignments); !read)
    return read.error();
  auto values = exec::bindKnownParams(variant, assignments);
  if (!values)
    return values.error();
  for (const capture::NamedParam &captured : step.step.params) {
    const auto index = exec::paramIndex(variant, captured.name);
    if (!index)
      return Error{ErrorCode::Diagnostics, "`" + step.path + "`: " + index.error().message,
                   index.error().hint};
    const spec::Param &param = variant.params[*index];
    if (!fits(variant, param, captured.value))
      return Error{ErrorCode::Diagnostics,
                   "`" + step.path + "`: the values of parameter `" + param.name + "` are not " +
                       exec::paramTypeName(param),
                   ""};
    if (!isAssigned(assignments, param.name))
      (*values)[*index] = captured.value;
  }
  for (std::size_t i = 0; i < values->size(); ++i) {
    const spec::Param &param = variant.params[i];
    if (exec::countOf((*values)[i]) == 0 && !param.isSizedByRun())
      return Error{ErrorCode::Usage,
                   "the captured step lacks the value of parameter `" + param.name + "` (" +
                       exec::paramTypeName(param) + "), which only the GPU had",
                   "give it with --param, or capture the step with DEFT_CAPTURE=FOLDER:device"};
  }
  return values;
}

std::vector<std::string> differencesOf(const ReplayStep &replay) {
  const capture::Step &step = replay.step;
  std::vector<std::string> texts;
  if (replay.tensors.empty())
    texts.push_back("q, K and V are random");
  if (step.pageSize > 0 && !replay.place.isAsCaptured)
    texts.push_back("the page table was not captured: pages are in the order of the nodes");
  if (replay.place.pagesAdded > 0)
    texts.push_back(counted(replay.place.pagesAdded, "page", "pages") +
                    " that the captured table lacks are added");
  if (!step.readDevice && step.device.kind == config::DeviceKind::Gpu)
    texts.push_back("lengths are the host's");
  if (!step.drafts.empty())
    texts.push_back("drafts are nodes of the tree; the captured plan had stand-ins for them");
  for (const std::string &name : step.paramsLeftOut)
    texts.push_back("values of `" + name + "` were not captured");
  if (step.isPackaged)
    texts.push_back("the captured run had the kernels of a package; here they are compiled again");
  if (replay.variant().readsGivenLists())
    texts.push_back("lists are random, since the program's were not captured");
  const abi::CacheLayout packed = exec::cacheLayoutsOf(replay.variant()).k;
  const auto differs = [](const abi::CacheLayout &a, const abi::CacheLayout &b) {
    return a.pageStride != b.pageStride || a.tokenStride != b.tokenStride || a.headStride != b.headStride;
  };
  if (step.run && differs(step.run->cache.k, packed))
    texts.push_back("the cache is packed, the captured one had strides");
  return texts;
}

std::string stepText(const ReplayStep &replay) {
  const capture::Step &step = replay.step;
  std::string text;
  addLine(text, "captured",
          "by deftc " + printable(step.version) + " on " + printable(step.device.text()) + ", " +
              momentText(step));
  if (step.run)
    addLine(text, "run",
            kindText(*step.run) + (step.run->isInGraph ? ", replayed by a CUDA graph" : "") + ", " +
                timeText(step.runUs));
  addLine(text, "config", configText(step.config) + (step.plan.isInvariant ? "; invariant" : ""));
  addLine(text, "chosen",
          printable(step.reason.rule + ": " + step.reason.why +
                    (step.reason.treeClass.empty() ? "" : "; class " + step.reason.treeClass)));
  addLine(text, "plan",
          counted(step.plan.items, "item", "items") + ", " +
              counted(step.plan.partials, "partial", "partials") + ", " +
              withSeparators(step.plan.tokensRead) + " tokens read, for " +
              counted(step.plan.workers, "worker", "workers") + "; made in " + timeText(step.planUs));
  std::string different;
  for (const std::string &one : differencesOf(replay))
    different += (different.empty() ? "" : "; ") + printable(one);
  if (!different.empty())
    addLine(text, "replay", different);
  return text;
}

} // namespace deft::cli
