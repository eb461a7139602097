#include "tuner/calibrate/Probes.h"

#include "tuner/workload/Workload.h"

namespace deft::calibrate {
namespace {

struct TreeWord {
  const char *name;
  bool isCutOtherwise;
};
constexpr TreeWord kTrees[] = {
    {"levels:nodes=1,tokens=8192", false},             // one request: reading
    {"levels:nodes=16,tokens=64", false},              // almost nothing: the launch
    {"levels:nodes=48,tokens=400", false},             // many that share nothing
    {"levels:nodes=1,20,tokens=4000,200", true},       // a prompt and its branches
    {"levels:nodes=1,64,tokens=2048,32", true},        // mostly shared tokens
    {"levels:nodes=1,2,64,tokens=8,256,32", true},     // short nodes above the shared ones
    {"levels:nodes=1,16,64,tokens=1024,256,32", true}, // three levels, each with a cost
    {"levels:nodes=1,2,4,8,16,32,64,128,tokens=16,16,16,16,16,16,16,16", true},
    {"levels:nodes=1,4,16,128,tokens=1024,256,128,32", false},
};
/// For a GPU: smaller trees do not fill it.
constexpr TreeWord kLargeTrees[] = {
    {"levels:nodes=1,1024,tokens=2048,32", false},
    {"levels:nodes=1,256,tokens=256,32", false},
    {"levels:nodes=1,4,16,512,tokens=1024,256,128,32", false},
    {"levels:nodes=64,tokens=2048", false},
    {"levels:nodes=4,512,tokens=12288,16", false}, // 200 MB that several tiles read: the last-level cache
};

} // namespace

support::Result<std::vector<ProbeTree>> probeTrees(config::DeviceKind device) {
  std::vector<TreeWord> words(std::begin(kTrees), std::end(kTrees));
  if (device == config::DeviceKind::Gpu)
    words.insert(words.end(), std::begin(kLargeTrees), std::end(kLargeTrees));
  std::vector<ProbeTree> trees;
  for (const TreeWord &word : words) {
    auto workload = workload::make(word.name, 0);
    if (!workload)
      return workload.error();
    trees.push_back({word.name, workload->tree(), word.isCutOtherwise});
  }
  return trees;
}

std::vector<ProbeConfig> probeConfigs(const std::vector<config::Config> &untuned, config::DeviceKind device) {
  std::vector<ProbeConfig> all;
  for (const config::Config &config : untuned)
    all.push_back({config, true});
  const auto add = [&](spec::Partition partition, int chunkTokens) {
    config::Config config = untuned.front();
    config.partition = partition;
    config.chunkTokens = chunkTokens;
    all.push_back({std::move(config), device == config::DeviceKind::Cpu});
  };
  if (device == config::DeviceKind::Cpu) { // one kernel: the choice is between partitions
    add(spec::Partition::Node, 0);
    add(spec::Partition::Union, 0);
  }
  add(spec::Partition::NodeChunk, 256);
  add(spec::Partition::Query, 0);
  return all;
}

} // namespace deft::calibrate
