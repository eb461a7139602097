#include "tests/gpu/execution/Decoding.h"

#include "runtime/api/SequenceTree.h"
#include "runtime/exec/Half.h"
#include "runtime/exec/RandomInputs.h"
#include "runtime/reference/Check.h"

#include <algorithm>
#include <cstring>

namespace deft::gpu_test {

namespace {

constexpr int kPoolTokens = 24 * 1024;
constexpr int kCheckThreads = 4;
constexpr long long kMostRowTokens = 60'000; ///< that the oracle reads of a step and layer

int poolPages(const spec::Variant &variant) {
  const int pageSize = variant.cache.pageSize;
  return pageSize == 0 ? kPoolTokens : kPoolTokens / pageSize;
}

SequenceTree makeSequences(const spec::Variant &variant) {
  return SequenceTree::make({variant.cache.pageSize, poolPages(variant)}).value();
}

/// Uniform, as normal values would take minutes here.
std::uint16_t randomValue(std::mt19937_64 &random, spec::DType dtype) {
  return exec::fromFloat(static_cast<float>(random() >> 40) * 0x1p-23f - 1.f, dtype);
}

} // namespace

Decoding::Decoding(const Subject &subject, Findings &findings, const Stream &stream, const Options &options)
    : subject_(subject), findings_(findings), stream_(stream), options_(options), random_(options.seed),
      sequences_(makeSequences(subject.variant())), q_(subject.device) {
  fillCache();
  prompt_ = sequences_.addRoot(700).value();
  for (int i = 0; i < options.branches; ++i)
    leaves_.push_back(sequences_.addChild(prompt_, 20 + 30 * i).value());
  setQueries();
}

void Decoding::fillCache() {
  const spec::Variant &variant = subject_.variant();
  const std::size_t elements =
      static_cast<std::size_t>(kPoolTokens) * variant.kvHeads * variant.tensors.k.dim;
  for (int i = 0; i < options_.layers; ++i) {
    Layer &layer = layers_.emplace_back(subject_.device);
    layer.inputs.cache = exec::cacheLayoutsOf(variant);
    layer.inputs.params = subject_.params;
    for (auto *values : {&layer.inputs.k, &layer.inputs.v}) {
      values->resize(elements);
      for (std::uint16_t &value : *values)
        value = randomValue(random_, variant.tensors.k.dtype);
    }
    findings_.require(layer.k.upload(layer.inputs.k, "K"), "the cache");
    findings_.require(layer.v.upload(layer.inputs.v, "V"), "the cache");
    findings_.require(layer.out.reserve(qBytes(), "out"), "the outputs");
    findings_.require(layer.lse.reserve(lseBytes(), "lse"), "the outputs");
  }
  findings_.require(q_.reserve(qBytes(), "q"), "the queries");
}

std::size_t Decoding::qBytes() const {
  const spec::Variant &variant = subject_.variant();
  return static_cast<std::size_t>(kMostQueries) * variant.queryHeads * variant.tensors.q.dim *
         sizeof(std::uint16_t);
}

std::size_t Decoding::lseBytes() const {
  return static_cast<std::size_t>(kMostQueries) * subject_.variant().queryHeads * sizeof(float);
}

/// In the cache of every layer, on the host and on the GPU, when nothing is under way.
void Decoding::apply(const std::vector<TokenCopy> &copies) {
  if (copies.empty())
    return;
  const spec::Variant &variant = subject_.variant();
  const int pageSize = variant.cache.pageSize;
  judge("before a copy"); // by the cache that they read
  for (Layer &layer : layers_) {
    for (auto *values : {&layer.inputs.k, &layer.inputs.v})
      for (const TokenCopy &copy : copies)
        for (int token = 0; token < copy.tokens; ++token)
          for (int head = 0; head < variant.kvHeads; ++head) {
            const auto at = [&](std::int64_t slot) {
              const abi::CacheLayout &cache = layer.inputs.cache.k; // and V's
              const std::int64_t begin =
                  pageSize == 0 ? slot * cache.tokenStride
                                : slot / pageSize * cache.pageStride + slot % pageSize * cache.tokenStride;
              return values->data() + begin + head * cache.headStride;
            };
            std::copy_n(at(copy.from + token), variant.tensors.k.dim, at(copy.to + token));
          }
    findings_.require(layer.k.upload(layer.inputs.k, "K"), "a copy");
    findings_.require(layer.v.upload(layer.inputs.v, "V"), "a copy");
  }
}

void Decoding::append(int leaf, int tokens) { apply(sequences_.append(leaf, tokens).value()); }

void Decoding::setQueries() {
  std::vector<Query> queries;
  for (const int leaf : leaves_)
    queries.push_back({leaf});
  sequences_.setQueries(queries).value();
}

void Decoding::grow() {
  for (const int leaf : leaves_)
    append(leaf, 1 + static_cast<int>(random_() % 3));
}

void Decoding::restructure() {
  const std::size_t which = random_() % leaves_.size();
  switch (random_() % 4) {
  case 0: { // one goes on in two ways
    if (leaves_.size() + 1 > kMostQueries)
      return;
    const int parent = leaves_[which];
    leaves_[which] = sequences_.fork(parent).value();
    leaves_.push_back(sequences_.fork(parent).value());
    break;
  }
  case 1:
    if (leaves_.size() > 2) {
      sequences_.prune(leaves_[which]).value();
      leaves_.erase(leaves_.begin() + static_cast<std::ptrdiff_t>(which));
    }
    break;
  case 2:
    if (leaves_.size() < kMostQueries)
      leaves_.push_back(sequences_.addRoot(1 + static_cast<int>(random_() % 300)).value());
    break;
  default:
    if (leaves_.size() < kMostQueries && sequences_.tree().node(prompt_).tokens > 40)
      leaves_.push_back(sequences_.fork(prompt_, 40).value());
  }
  for (const int leaf : leaves_) // a fork begins empty
    append(leaf, 1);
  setQueries();
}

Decoding::Step &Decoding::freeStep() {
  const std::size_t poison = std::max(qBytes(), lseBytes());
  if (spare_.empty()) {
    auto step = std::make_unique<Step>(subject_.device);
    const std::size_t bytes = qBytes() + poison + layers_.size() * (qBytes() + lseBytes());
    findings_.require(step->memory.reserve(bytes, "a step"), "a step");
    std::memset(step->memory.as<std::byte>() + qBytes(), 0xff, poison);
    spare_.push_back(std::move(step));
  }
  steps_.push_back(std::move(spare_.back()));
  spare_.pop_back();
  return *steps_.back();
}

void Decoding::beginStep() {
  const spec::Variant &variant = subject_.variant();
  Step &step = freeStep();
  step.tree = sequences_.handle()->sequences.tree();
  step.pageTable.assign(sequences_.pageTable().begin(), sequences_.pageTable().end());
  step.queries = tree().queryCount();
  step.isWhole = false;
  auto *q = step.memory.as<std::uint16_t>();
  const std::size_t count =
      static_cast<std::size_t>(step.queries) * variant.queryHeads * variant.tensors.q.dim;
  for (std::size_t i = 0; i < count; ++i)
    q[i] = randomValue(random_, variant.tensors.q.dtype);
  const device::Device::Current current(*subject_.device);
  const auto copy = [&](const device::Buffer &to, const std::byte *from, std::size_t bytes) {
    findings_.require(subject_.device->api().memcpyHtoDAsync(reinterpret_cast<std::uintptr_t>(to.as<void>()),
                                                             from, bytes, stream_.get()) == 0,
                      "a copy to the device");
  };
  const auto *memory = step.memory.as<std::byte>();
  copy(q_, memory, qBytes());
  for (const Layer &layer : layers_) {
    copy(layer.out, memory + qBytes(), qBytes());
    copy(layer.lse, memory + qBytes(), lseBytes());
  }
}

bool Decoding::enqueueRuns(GpuPlan &plan, const GpuPageTable &table) {
  for (const Layer &layer : layers_) {
    const auto ran = plan.run(
        subject_.attention,
        {.q = q_.as<void>(), .k = layer.k.as<void>(), .v = layer.v.as<void>(), .pageTable = table.data()},
        {.out = layer.out.as<void>(), .lse = subject_.variant().withLse ? layer.lse.as<float>() : nullptr},
        stream_.get());
    if (!findings_.require(ran, "a run"))
      return false;
  }
  return true;
}

void Decoding::endStep() {
  Step &step = *steps_.back();
  const device::Device::Current current(*subject_.device);
  auto *to = step.memory.as<std::byte>() + qBytes() + std::max(qBytes(), lseBytes());
  const auto copy = [&](const device::Buffer &from, std::size_t bytes) {
    findings_.require(subject_.device->api().memcpyDtoHAsync(
                          to, reinterpret_cast<std::uintptr_t>(from.as<void>()), bytes, stream_.get()) == 0,
                      "a copy to the host");
    to += bytes;
  };
  for (const Layer &layer : layers_) {
    copy(layer.out, qBytes());
    copy(layer.lse, lseBytes());
  }
  step.isWhole = true;
}

void Decoding::judgeStep(const Step &step, const std::string &what) {
  const spec::Variant &variant = subject_.variant();
  const std::size_t rows = static_cast<std::size_t>(step.queries) * variant.queryHeads;
  const auto *q = step.memory.as<std::uint16_t>();
  const auto *from = step.memory.as<std::byte>() + qBytes() + std::max(qBytes(), lseBytes());
  for (Layer &layer : layers_) {
    layer.inputs.queryCount = step.queries;
    layer.inputs.q.assign(q, q + rows * variant.tensors.q.dim);
    layer.inputs.pageTable = step.pageTable;
    exec::Outputs outputs;
    outputs.out.resize(rows * variant.tensors.out.dim);
    std::memcpy(outputs.out.data(), from, outputs.out.size() * sizeof(std::uint16_t));
    outputs.lse.resize(variant.withLse ? rows : 0);
    std::memcpy(outputs.lse.data(), from + qBytes(), outputs.lse.size() * sizeof(float));
    from += qBytes() + lseBytes();
    const auto report = reference::check(variant, step.tree, layer.inputs, outputs,
                                         {.threads = kCheckThreads, .mostRowTokens = kMostRowTokens});
    findings_.require(report.passed(), what + ", step " + std::to_string(judgedSteps_) + ", layer " +
                                           std::to_string(&layer - layers_.data()) + ": " +
                                           reference::explainFailure(report));
  }
}

void Decoding::judgePending(const std::string &what) {
  for (const auto &step : steps_)
    if (step->isWhole) {
      judgeStep(*step, what);
      ++judgedSteps_;
    }
  while (!steps_.empty()) {
    spare_.push_back(std::move(steps_.back()));
    steps_.pop_back();
  }
}

bool Decoding::judge(const std::string &what) {
  const int before = findings_.count();
  findings_.require(stream_.wait(), what + ": the stream failed");
  judgePending(what);
  return findings_.count() == before;
}

} // namespace deft::gpu_test
