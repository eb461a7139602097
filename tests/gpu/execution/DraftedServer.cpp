#include "tests/gpu/execution/DraftedServer.h"

#include "runtime/exec/Half.h"
#include "runtime/exec/RandomInputs.h"
#include "runtime/reference/Check.h"

#include <algorithm>

namespace deft::gpu_test {

namespace {

constexpr int kCheckThreads = 4;
constexpr long long kMostRowTokens = 60'000; ///< that the oracle reads of a step

/// Uniform, as normal values would take minutes here.
std::uint16_t randomValue(std::mt19937 &random, spec::DType dtype) {
  return exec::fromFloat(static_cast<float>(random() >> 8) * 0x1p-23f - 1.f, dtype);
}

} // namespace

DraftedServer::DraftedServer(const Subject &subject, Findings &findings, const Stream &stream,
                             const Options &options)
    : subject_(subject), findings_(findings), stream_(stream), options_(options),
      random_(static_cast<unsigned>(options.seed)), pageSize_(subject.variant().cache.pageSize),
      rowPages_((options.roomTokens + pageSize_ - 1) / pageSize_), rowTokens_(rowPages_ * pageSize_),
      trees_(index(options.requests), test::draftChain(1)), k_(subject.device), v_(subject.device),
      q_(subject.device), out_(subject.device), lse_(subject.device), tableOnGpu_(subject.device),
      bitsOnGpu_(subject.device), lengthsOnGpu_(subject.device),
      batch_(PagedBatch::make({.pageSize = pageSize_}).value()) {
  const spec::Variant &variant = subject.variant();
  const int sharedPages = options.promptTokens / pageSize_;
  int page = sharedPages;
  for (int r = 0; r < options.requests; ++r)
    for (int p = 0; p < rowPages_; ++p)
      table_.push_back(p < sharedPages ? p : page++);
  // Pages of a request are anywhere.
  std::vector<int> places(index(page));
  for (int p = 0; p < page; ++p)
    places[index(p)] = p;
  std::shuffle(places.begin(), places.end(), random_);
  for (int &entry : table_)
    entry = places[index(entry)];
  lengths_.assign(index(options.requests), sharedPages * pageSize_ + options.ownTokens);

  inputs_.cache = exec::cacheLayoutsOf(variant);
  inputs_.params = subject.params;
  inputs_.pageTable = table_;
  for (auto *values : {&inputs_.k, &inputs_.v}) {
    values->resize(index(page) * index(pageSize_) * index(variant.kvHeads) * index(variant.tensors.k.dim));
    for (std::uint16_t &value : *values)
      value = randomValue(random_, variant.tensors.k.dtype);
  }
  const int most = options.requests * options.mostDrafts;
  findings.require(k_.upload(inputs_.k, "K"), "the cache");
  findings.require(v_.upload(inputs_.v, "V"), "the cache");
  findings.require(q_.reserve(rowElements(most) * sizeof(std::uint16_t), "q"), "the queries");
  findings.require(out_.reserve(rowElements(most) * sizeof(std::uint16_t), "out"), "the outputs");
  findings.require(lse_.reserve(index(most * variant.queryHeads) * sizeof(float), "lse"), "the outputs");
  findings.require(tableOnGpu_.upload(table_, "the page table"), "the page table");
  bits_.resize(index(most * ((options.mostDrafts + 31) / 32)));
  findings.require(bitsOnGpu_.upload(bits_, "the mask"), "the mask");
  findings.require(lengthsOnGpu_.upload(lengths_, "lengths"), "the lengths");
}

std::size_t DraftedServer::rowElements(int queries) const {
  return index(queries) * index(subject_.variant().queryHeads) * index(subject_.variant().tensors.q.dim);
}

int DraftedServer::queryCount() const {
  int count = 0;
  for (const test::DraftParents &tree : trees_)
    count += static_cast<int>(tree.size());
  return count;
}

PagedRequests DraftedServer::asked() const {
  return {.table = {.entries = table_, .rowStride = rowPages_}, .lengths = lengths_, .drafts = drafts_};
}

void DraftedServer::updateBatch() {
  drafts_.clear();
  for (const test::DraftParents &tree : trees_)
    drafts_.push_back(static_cast<int>(tree.size()));
  findings_.require(batch_.update(asked()), "a batch with drafts");
}

Tree DraftedServer::knownTree() const {
  Tree tree;
  const int shared = options_.promptTokens / pageSize_ * pageSize_;
  const int prompt = shared > 0 ? tree.addRoot(shared, 0).value() : -1;
  for (int r = 0; r < options_.requests; ++r) {
    const int row = r * rowTokens_, own = length(r) - shared;
    int end = prompt;
    if (own > 0 || prompt < 0)
      end = prompt < 0 ? tree.addRoot(length(r), row).value()
                       : tree.addChild(prompt, own, row + shared).value();
    std::vector<int> nodes(trees_[index(r)].size(), -1);
    std::size_t left = nodes.size();
    while (left > 0) // parents may have larger numbers
      for (std::size_t draft = 0; draft < nodes.size(); ++draft) {
        const int parent = trees_[index(r)][draft];
        if (nodes[draft] >= 0 || (parent >= 0 && nodes[index(parent)] < 0))
          continue;
        nodes[draft] = tree.addChild(parent < 0 ? end : nodes[index(parent)], 1,
                                     row + length(r) + static_cast<int>(draft))
                           .value();
        --left;
      }
    for (const int node : nodes)
      (void)tree.addQuery(node).value();
  }
  return tree;
}

void DraftedServer::beginStep() {
  const int words = (options_.mostDrafts + 31) / 32;
  for (int r = 0; r < options_.requests; ++r) {
    const auto own = test::maskOf(trees_[index(r)], options_.mostDrafts, random_);
    std::copy(own.begin(), own.end(), bits_.begin() + r * options_.mostDrafts * words);
  }
  inputs_.queryCount = queryCount();
  inputs_.q.resize(rowElements(inputs_.queryCount));
  for (std::uint16_t &value : inputs_.q)
    value = randomValue(random_, subject_.variant().tensors.q.dtype);
  findings_.require(stream_.wait(), "the stream");
  findings_.require(bitsOnGpu_.upload(bits_, "the mask"), "the mask");
  findings_.require(lengthsOnGpu_.upload(lengths_, "lengths"), "the lengths");
  findings_.require(q_.upload(inputs_.q, "q"), "the queries");
  findings_.require(out_.fill(0xff), "the outputs");
  findings_.require(lse_.fill(0xff), "the outputs");
}

DraftMask DraftedServer::mask() const {
  return {.bits = bitsOnGpu_.as<std::uint32_t>(),
          .drafts = options_.mostDrafts,
          .requests = options_.requests,
          .lengths = lengthsOnGpu_.as<int>()};
}

bool DraftedServer::enqueueDraft(GpuPlan &plan) {
  return findings_.require(plan.draft(mask(), stream_.get()), "the mask of drafts");
}

bool DraftedServer::enqueueRun(GpuPlan &plan) {
  return findings_.require(
      plan.run(
          subject_.attention,
          {.q = q_.as<void>(), .k = k_.as<void>(), .v = v_.as<void>(), .pageTable = tableOnGpu_.as<int>()},
          {.out = out_.as<void>(), .lse = subject_.variant().withLse ? lse_.as<float>() : nullptr},
          stream_.get()),
      "a run");
}

bool DraftedServer::judge(const std::string &what) {
  const spec::Variant &variant = subject_.variant();
  if (!findings_.require(stream_.wait(), what + ": the stream failed"))
    return false;
  tree::KvTree tree;
  for (int r = 0; r < options_.requests; ++r) {
    const int row = r * rowTokens_, root = *tree.addNode(-1, length(r), row);
    const test::DraftParents &drafts = trees_[index(r)];
    for (int draft = 0; draft < static_cast<int>(drafts.size()); ++draft) { // each with a path of its own
      std::vector<int> path;
      for (int at = draft; at >= 0; at = drafts[index(at)])
        path.push_back(at);
      int node = root;
      for (auto at = path.rbegin(); at != path.rend(); ++at)
        node = *tree.addNode(node, 1, row + length(r) + *at);
      (void)tree.addQuery(node);
    }
  }
  exec::Outputs outputs;
  outputs.out.resize(rowElements(inputs_.queryCount));
  outputs.lse.resize(variant.withLse ? index(inputs_.queryCount * variant.queryHeads) : 0);
  findings_.require(out_.download(outputs.out.data(), outputs.out.size() * sizeof(std::uint16_t)), "out");
  findings_.require(lse_.download(outputs.lse.data(), outputs.lse.size() * sizeof(float)), "lse");
  const auto report = reference::check(variant, tree, inputs_, outputs,
                                       {.threads = kCheckThreads, .mostRowTokens = kMostRowTokens});
  return findings_.require(report.passed(), what + ": " + reference::explainFailure(report));
}

} // namespace deft::gpu_test
