#include "tuner/measure/MeasureService.h"

#include "compiler/config/ConfigJson.h"
#include "runtime/plan/Planner.h"
#include "runtime/reference/Counting.h"
#include "tuner/measure/OracleTable.h"

#include <algorithm>
#include <map>
#include <optional>

namespace deft::measure {

using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

/// For the oracle, once for each class: about half a second on one core; less for counting inputs.
constexpr long long kMostCheckedPairs = 2'000'000;

class MeasureService : public Service {
public:
  MeasureService(const Work &work, std::unique_ptr<Machine> machine)
      : work_(work), machine_(std::move(machine)) {}

  Result<Message> handle(const Message &request) override {
    const std::string op = request.head.at("op").get<std::string>();
    if (op == "device")
      return Message{{{"key", config_cache::toJson(machine_->key())}, {"driver", machine_->driver()}}, {}};
    if (op == "class")
      return openClass(request.head.at("class").get<std::size_t>());
    if (op == "prepare")
      return prepare(request);
    const std::string id = request.head.at("id").get<std::string>();
    if (op == "forget") {
      prepared_.erase(id);
      return Message{json::object(), {}};
    }
    const auto found = prepared_.find(id);
    if (found == prepared_.end())
      return Error{ErrorCode::Internal, "candidate " + id + " is not prepared", ""};
    if (op == "check")
      return check(found->second);
    if (op == "time")
      return time(found->second, request.head.at("tree").get<std::size_t>(),
                  request.head.at("repeats").get<int>());
    return Error{ErrorCode::Internal, "unknown request `" + op + "`", ""};
  }

private:
  /// A candidate that is ready to run.
  struct Prepared {
    std::unique_ptr<Runner> runner;
    std::vector<plan::Plan> plans; ///< one for each tree
  };

  Result<Message> openClass(std::size_t index) {
    prepared_.clear();
    oracle_.reset();
    counting_.reset();
    const auto isNew = inputs_.open(work_.classes.at(index));
    if (!isNew)
      return isNew.error();
    // The check uses the class's smallest tree, by the length of its paths.
    const auto pathTokens = [](const tree::KvTree &tree) {
      long long sum = 0;
      for (const tree::Query &query : tree.queries())
        sum += tree.pathTokens(query);
      return sum;
    };
    checked_ = 0;
    const std::vector<tree::KvTree> &trees = inputs_.trees();
    for (std::size_t i = 1; i < trees.size(); ++i)
      if (pathTokens(trees[i]) < pathTokens(trees[checked_]))
        checked_ = i;
    isLoaded_ = isLoaded_ && !*isNew;
    if (!isLoaded_)
      if (auto loaded = machine_->load(inputs_.inputs()); !loaded)
        return loaded.error();
    isLoaded_ = true;
    return Message{json::object(), {}};
  }

  Result<Message> prepare(const Message &request) {
    const auto config = config::configFromJson(request.head.at("config"), machine_->key().kind);
    if (!config)
      return config.error();
    std::optional<package::KernelSet> kernels;
    if (request.head.contains("kernels"))
      kernels = unpackKernels(request, *config);
    auto runner = machine_->open(kernels ? &*kernels : nullptr);
    if (!runner)
      return runner.error();
    Prepared candidate{std::move(*runner), {}};
    const int blocks = candidate.runner->blocks();
    const auto facts = factsOf(work_, machine_->key().kind);
    for (const tree::KvTree &tree : inputs_.trees()) {
      auto plan = plan::makePlan(tree, facts, *config, blocks);
      if (!plan)
        return plan.error();
      candidate.plans.push_back(std::move(*plan));
    }
    prepared_.insert_or_assign(request.head.at("id").get<std::string>(), std::move(candidate));
    return Message{{{"blocks", blocks}}, {}};
  }

  Result<Message> check(Prepared &candidate) {
    exec::Outputs outputs;
    if (auto ran = candidate.runner->run(candidate.plans[checked_], InputSet::Values, outputs); !ran)
      return ran.error();
    if (!oracle_) {
      oracle_.emplace(work_.variant, inputs_.trees()[checked_], inputs_.inputs(), kMostCheckedPairs,
                      work_.threads);
    }
    const auto compared = oracle_->compare(outputs);
    std::string why = compared ? "" : compared.error().message;
    if (why.empty()) {
      const auto counted = count(candidate);
      if (!counted)
        return counted.error();
      why = counted->passed() ? "" : "counting inputs: " + counted->fault;
    }
    return Message{{{"right", why.empty()}, {"why", why}}, {}};
  }

  /// In one pass. If paths are too long for a pass, the pass changes only every few candidates: a copy of the
  /// cache takes longer than a run.
  Result<reference::CountReport> count(Prepared &candidate) {
    constexpr int kCandidatesOfPass = 4;
    if (!counting_) {
      counting_.emplace(work_.variant, inputs_.trees()[checked_], inputs_.inputs(),
                        reference::CountOptions{work_.threads, kMostCheckedPairs});
      counting_->keepWeights();
      counted_ = 0;
    }
    const int pass = counted_++ / kCandidatesOfPass % counting_->passes();
    exec::Inputs &inputs = counting_->inputs(pass);
    const bool isNew = counted_ == 1 || (counting_->passes() > 1 && counted_ % kCandidatesOfPass == 1);
    if (isNew)
      if (auto loaded = machine_->load(inputs, InputSet::Counting); !loaded)
        return loaded.error();
    exec::Outputs outputs;
    if (auto ran = candidate.runner->run(candidate.plans[checked_], InputSet::Counting, outputs); !ran)
      return ran.error();
    counting_->take(outputs);
    return counting_->judge();
  }

  Result<Message> time(Prepared &candidate, std::size_t tree, int repeats) {
    const auto times = candidate.runner->time(candidate.plans.at(tree), repeats);
    if (!times)
      return times.error();
    return Message{{{"us", *times}}, {}};
  }

  const Work &work_;
  std::unique_ptr<Machine> machine_;
  InputPool inputs_{work_};
  bool isLoaded_ = false;   ///< on the machine
  std::size_t checked_ = 0; ///< the tree that is checked against the oracle
  std::optional<OracleTable> oracle_;
  std::optional<reference::Counting> counting_; ///< of the same tree
  int counted_ = 0;                             ///< candidates
  std::map<std::string, Prepared> prepared_;
};

json headOf(const package::Kernel &kernel) {
  return {{"entry", kernel.entry}, {"threads", kernel.threads}, {"smem_bytes", kernel.smemBytes}};
}

package::Kernel kernelOf(const json &head, const std::string &cubin) {
  package::Kernel kernel;
  kernel.entry = head.at("entry").get<std::string>();
  kernel.threads = head.at("threads").get<int>();
  kernel.smemBytes = head.at("smem_bytes").get<int>();
  kernel.cubin = cubin;
  return kernel;
}

} // namespace

void packKernels(const package::KernelSet &kernels, Message &message) {
  json list = json::array();
  for (const package::Kernel &kernel : kernels.attend) {
    list.push_back(headOf(kernel));
    message.blobs.push_back(kernel.cubin);
  }
  message.blobs.push_back(kernels.merge.cubin);
  message.head["kernels"] = {
      {"arch", kernels.arch}, {"attend", std::move(list)}, {"merge", headOf(kernels.merge)}};
  if (kernels.query) {
    message.head["kernels"]["query"] = headOf(*kernels.query);
    message.blobs.push_back(kernels.query->cubin);
  }
}

package::KernelSet unpackKernels(const Message &message, const config::Config &config) {
  const json &head = message.head.at("kernels");
  package::KernelSet kernels;
  kernels.arch = head.at("arch").get<std::string>();
  kernels.config = config;
  std::size_t blob = 0;
  for (const json &kernel : head.at("attend"))
    kernels.attend.push_back(kernelOf(kernel, message.blobs.at(blob++)));
  kernels.merge = kernelOf(head.at("merge"), message.blobs.at(blob++));
  if (head.contains("query"))
    kernels.query = kernelOf(head.at("query"), message.blobs.at(blob));
  return kernels;
}

Result<std::unique_ptr<Service>> makeMeasureService(const Work &work, const MachineMaker &make) {
  auto machine = make();
  if (!machine)
    return machine.error();
  return std::unique_ptr<Service>(std::make_unique<MeasureService>(work, std::move(*machine)));
}

} // namespace deft::measure
