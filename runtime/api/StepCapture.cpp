#include "runtime/api/StepCapture.h"

#include "compiler/package/PackagedSpec.h"
#include "runtime/api/Params.h"
#include "runtime/capture/StepTree.h"

#include <deft/c/status.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

namespace deft::api {

namespace fs = std::filesystem;

namespace {

/// Attentions with which a step is written, of the layers that share its plan.
constexpr std::size_t kMostAttentions = 4;

/// Imports are found by their names alone (capture files tell no folder).
Result<std::vector<package::SpecFile>> specOf(const Attention &attention) {
  std::vector<package::SpecFile> files = attention.program.specFiles();
  std::set<std::string> names;
  for (package::SpecFile &file : files) {
    if (!file.name.starts_with('<'))
      file.name = fs::path(file.name).filename().string();
    if (file.name.empty())
      file.name = "spec.deft";
    if (!names.insert(file.name).second)
      return usage("the spec imports two files that are called `" + file.name + "`");
  }
  return files;
}

capture::ConfigReason reasonOf(const Plan &plan) {
  if (!plan.chooser)
    return {"heuristic", "", "an invariant plan's config does not depend on the tree", ""};
  const config_cache::Ruling &ruling = plan.chooser->ruling();
  const std::string &path = ruling.chosen.path;
  capture::ConfigReason reason{std::string(config_cache::ruleName(ruling.rule())), ruling.treeClass.text(),
                               ruling.chosen.why(), fs::path(path).filename().string()};
  if (!path.empty()) // which folder it is in is nobody's business elsewhere
    for (std::size_t at; (at = reason.why.find(path)) != std::string::npos && path != reason.file;)
      reason.why.replace(at, path.size(), reason.file);
  return reason;
}

void addPlan(capture::Step &step, const Plan &plan) {
  const deft_plan_summary summary = plan.summary();
  step.config = plan.config;
  step.reason = reasonOf(plan);
  step.plan = {plan.isInvariant(), plan.workers, summary.items, summary.partials, summary.tokens_read};
}

/// Whether the request's drafts are known, and how long it is, by a mask in memory that can be read.
Result<capture::Drafts> readDrafts(const tree::DraftedRequest &request, const DraftMask &mask,
                                   const MemoryReader &reader) {
  capture::Drafts drafts{.request = request};
  const auto count = static_cast<std::size_t>(request.count), row = static_cast<std::size_t>(request.request);
  const std::size_t words = (static_cast<std::size_t>(mask.drafts) + 31) / 32;
  std::vector<std::uint32_t> bits(count * words);
  if (auto read = reader.read(mask.bits + row * static_cast<std::size_t>(mask.drafts) * words,
                              bits.size() * sizeof bits[0], bits.data());
      !read)
    return read.error();
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<int> &sees = drafts.sees.emplace_back();
    for (std::size_t j = 0; j < count; ++j)
      if ((bits[i * words + j / 32] >> (j % 32) & 1) != 0)
        sees.push_back(static_cast<int>(j));
  }
  if (mask.depths) {
    drafts.depths.resize(count);
    if (auto read = reader.read(mask.depths + row * static_cast<std::size_t>(mask.drafts),
                                count * sizeof(int), drafts.depths.data());
        !read)
      return read.error();
  }
  if (mask.lengths) {
    int length = 0;
    if (auto read = reader.read(mask.lengths + row, sizeof length, &length); !read)
      return read.error();
    drafts.gained = std::max(length - request.length, 0);
  }
  return drafts;
}

/// The page of each entry; -1: none, or not known.
Result<std::vector<int>> readPages(const PageEntries &table, const std::vector<int> &entries,
                                   const MemoryReader &reader) {
  std::vector<int> pages(entries.size(), -1);
  if (entries.empty() || !table.entries)
    return pages;
  std::int64_t end = std::int64_t{entries.back()} + 1;
  if (table.count >= 0)
    end = std::min(end, table.count);
  const std::int64_t begin = entries.front();
  if (begin >= end)
    return pages;
  std::vector<int> stretch(static_cast<std::size_t>(end - begin));
  if (auto read = reader.read(table.entries + begin, stretch.size() * sizeof(int), stretch.data()); !read)
    return read.error();
  for (std::size_t i = 0; i < entries.size() && entries[i] < end; ++i)
    pages[i] = stretch[static_cast<std::size_t>(entries[i] - begin)];
  return pages;
}

/// The value as the host knows it, or as its memory has it; none: nobody may look.
Result<std::optional<exec::ParamValue>> valueOf(const spec::Param &param, const exec::ParamValue &value,
                                                const TensorsOfStep *tensors, const MemoryReader *reader,
                                                int queries) {
  const bool isF32 = param.type == spec::ScalarType::F32;
  const bool isOfRun = param.isSizedByRun();
  if (exec::countOf(value) == 0 || (isOfRun && !tensors) || (value.device && !reader))
    return std::optional<exec::ParamValue>();
  if (!isOfRun && !value.device)
    return std::optional(value);
  exec::ParamValue read;
  const auto room = [&](std::size_t count) -> void * {
    if (isF32)
      read.f32.resize(count);
    else
      read.i32.resize(count);
    return isF32 ? static_cast<void *>(read.f32.data()) : read.i32.data();
  };
  const void *const array = value.device ? value.device
                            : isF32      ? static_cast<const void *>(value.f32.data())
                                         : value.i32.data();
  if (isOfRun && param.isOfTokens()) {
    const int each = tensors->run.variant().elementsOf(param);
    void *const to = room(static_cast<std::size_t>(tensors->tree.tokens()) * static_cast<std::size_t>(each));
    if (auto done = tensors->readTokenParam(array, each, to); !done)
      return done.error();
    return std::optional(std::move(read));
  }
  const std::size_t count = isOfRun ? static_cast<std::size_t>(queries) : exec::countOf(value);
  if (auto done = reader->read(array, count * 4, room(count)); !done)
    return done.error();
  return std::optional(std::move(read));
}

} // namespace

Result<void> HostMemoryReader::read(const void *from, std::size_t bytes, void *to) const {
  std::memcpy(to, from, bytes);
  return {};
}

SeenRun seenRun(std::shared_ptr<const Attention> attention, capture::RunKind kind, int budget,
                const RunTensors &tensors) {
  SeenRun run;
  run.attention = std::move(attention);
  run.facts = {.kind = kind,
               .hasLse = tensors.lse != nullptr,
               .budget = budget,
               .qStride = tensors.qStride,
               .outStride = tensors.outStride,
               .cache = tensors.cache};
  run.q = tensors.q;
  run.k = tensors.k;
  run.v = tensors.v;
  run.pageTable = tensors.pageTable;
  return run;
}

void PlanCapture::noteTree(const deft_tree &tree, double planUs) {
  const std::lock_guard lock(mutex_);
  if (stamp_ == tree.stamp && generation_ == tree.generation())
    return; // made once more, to fit a graph's room
  tree_ = tree.tree();
  stamp_ = tree.stamp;
  generation_ = tree.generation();
  drafted_ = tree.drafted();
  hostDrafts_.clear();
  claimed_.clear();
  planUs_ = planUs;
  ++steps_;
}

Result<void> PlanCapture::noteMask(const DraftMask &mask) {
  const std::lock_guard lock(mutex_);
  hostDrafts_.clear();
  claimed_.clear();
  for (const tree::DraftedRequest &request : drafted_) {
    auto drafts = readDrafts(request, mask, HostMemoryReader());
    if (!drafts)
      return drafts.error();
    hostDrafts_.push_back(std::move(*drafts));
  }
  return {};
}

void PlanCapture::noteMaskOnDevice(const DraftMask &mask) {
  const std::lock_guard lock(mutex_);
  mask_ = mask;
}

void PlanCapture::noteLengthsOnDevice(const int *lengths) {
  const std::lock_guard lock(mutex_);
  lengths_ = lengths;
}

void PlanCapture::noteGraph(SeenRun run) {
  const std::lock_guard lock(mutex_);
  graph_ = std::move(run);
}

std::optional<SeenRun> PlanCapture::graph() const {
  const std::lock_guard lock(mutex_);
  return graph_;
}

bool PlanCapture::claim(const Attention &attention) {
  const std::lock_guard lock(mutex_);
  if (!tree_ || !capture::isOn() || !capture::isWanted(steps_) || claimed_.size() >= kMostAttentions ||
      std::find(claimed_.begin(), claimed_.end(), &attention) != claimed_.end())
    return false;
  claimed_.push_back(&attention);
  return true;
}

/// Lengths and drafts, which only the device knows.
Result<void> PlanCapture::addDevice(capture::Step &step, const MemoryReader &reader) const {
  step.readDevice = true;
  if (lengths_ && drafted_.empty()) {
    step.lengths.resize(step.tree.queries().size());
    if (auto read = reader.read(lengths_, step.lengths.size() * sizeof(int), step.lengths.data()); !read)
      return read;
  }
  if (!mask_)
    return {};
  step.drafts.clear();
  for (const tree::DraftedRequest &request : drafted_) {
    auto drafts = readDrafts(request, *mask_, reader);
    if (!drafts)
      return drafts.error();
    step.drafts.push_back(std::move(*drafts));
  }
  return {};
}

Result<std::string> PlanCapture::write(const Plan &plan, const config_cache::DeviceKey &device,
                                       capture::Moment moment, const SeenRun &run, const MemoryReader *reader,
                                       std::optional<double> runUs) {
  const std::lock_guard lock(mutex_);
  if (!tree_)
    return usage("the plan has met no tree since captures are on", "advance the plan first");
  capture::Step step;
  step.version = deft_version();
  step.moment = moment;
  step.device = device;
  step.attention = run.variant().name;
  step.isPackaged = run.attention->program.isPackaged();
  auto spec = specOf(*run.attention);
  auto tree = capture::inFileOrder(*tree_);
  if (!spec || !tree)
    return spec ? Error(tree.error()) : spec.error();
  step.spec = std::move(*spec);
  step.tree = std::move(*tree);
  step.run = run.facts;
  addPlan(step, plan);
  step.planUs = planUs_;
  step.runUs = runUs;
  step.pageSize = run.variant().cache.pageSize;
  step.drafts = hostDrafts_;
  if (step.drafts.empty())
    for (const tree::DraftedRequest &request : drafted_)
      step.drafts.push_back({.request = request});
  if (reader && device.kind == config_cache::DeviceKey::Kind::Gpu)
    if (auto added = addDevice(step, *reader); !added)
      return added.error();

  // Where no tree says it, what is known of the host's is written all the same.
  const auto real = capture::treeOf(step);
  const tree::KvTree &tokens = real ? *real : step.tree;
  const std::vector<int> entries =
      step.pageSize > 0 ? capture::entriesOf(tokens, step.pageSize) : std::vector<int>();
  std::vector<int> pages;
  if (reader && step.pageSize > 0) {
    auto read = readPages(run.pageTable, entries, *reader);
    if (!read)
      return read.error();
    pages = std::move(*read);
    step.pageTable = capture::stretchesOf(entries, pages);
  }
  std::optional<TensorsOfStep> tensors;
  const bool isWritable = !run.variant().tensors.hasScales(); // rows with scales are no columns of one type
  if (reader && real && run.q && isWritable && capture::settings().hasTensors)
    tensors.emplace(TensorsOfStep{run, tokens, entries, pages, *reader});
  for (std::size_t i = 0; i < run.params.size(); ++i) {
    const spec::Param &param = run.variant().params[i];
    auto value = valueOf(param, run.params[i], tensors ? &*tensors : nullptr, reader,
                         static_cast<int>(step.tree.queries().size()));
    if (!value)
      return value.error();
    if (*value)
      step.params.push_back({param.name, std::move(**value)});
    else
      step.paramsLeftOut.push_back(param.name);
  }
  capture::WriteTensors writes;
  if (tensors)
    writes = [&](const std::string &folder) -> support::Result<std::int64_t> {
      const auto bytes = tensors->writeTo(folder);
      if (!bytes)
        return support::Error{bytes.error().code, bytes.error().message, ""};
      return *bytes;
    };
  return capture::write(std::move(step), writes, tensors ? tensors->bytes() : 0);
}

void noteTree(Plan &plan, const deft_tree &tree, double planUs) {
  if (!plan.captured)
    plan.captured = std::make_shared<PlanCapture>();
  plan.captured->noteTree(tree, planUs);
}

void captureRun(const Plan &plan, const deft_attention &attention, const deft_params &params,
                const RunTensors &tensors, capture::RunKind kind, int budget, double runUs) noexcept {
  try {
    if (!plan.captured->claim(*attention.of))
      return;
    SeenRun run = seenRun(attention.of, kind, budget, tensors);
    for (const std::optional<exec::ParamValue> &value : params.values)
      run.params.push_back(value.value_or(exec::ParamValue()));
    const HostMemoryReader reader;
    const auto device = config_cache::DeviceKey::ofCpu(plan.workers);
    if (auto written = plan.captured->write(plan, device, capture::Moment::Run, run, &reader, runUs);
        !written)
      capture::giveUp(written.error().message);
  } catch (const std::exception &failed) {
    capture::giveUp(failed.what());
  }
}

} // namespace deft::api
