#include "tests/gpu/random/CheckPool.h"

#include "runtime/reference/Check.h"

#include <algorithm>

namespace deft::gpu_test {

namespace {

constexpr std::size_t kMostWaiting = 64;

} // namespace

CheckPool::CheckPool(int threads) {
  for (int i = 0; i < std::max(threads, 1); ++i)
    threads_.emplace_back([this] { work(); });
}

CheckPool::~CheckPool() {
  {
    const std::lock_guard lock(mutex_);
    isClosed_ = true;
  }
  changed_.notify_all();
  for (std::thread &thread : threads_)
    if (thread.joinable())
      thread.join();
}

void CheckPool::add(FinishedCase finished) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiting_.size() < kMostWaiting; });
  waiting_.push_back(std::move(finished));
  lock.unlock();
  changed_.notify_all();
}

void CheckPool::note(const CaseName &name) {
  ++tally_.cases;
  for (const auto &[fact, value] : name.facts)
    ++tally_.counts[fact][value];
}

void CheckPool::count(const CaseName &name, const std::string &failure) {
  const std::lock_guard lock(mutex_);
  note(name);
  if (!failure.empty())
    tally_.failures.push_back(name.text + ": " + failure);
}

void CheckPool::work() {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return isClosed_ || !waiting_.empty(); });
    if (waiting_.empty())
      return;
    const FinishedCase one = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    changed_.notify_all();
    reference::CheckReport report =
        reference::check(*one.variant, one.tree, one.inputs, one.outputs, {1, kMostRowTokens});
    if (one.counting)
      report.count = one.counting->judge();
    lock.lock();
    note(one.name);
    tally_.queriesChecked += report.queriesChecked;
    tally_.worstLse = std::max(tally_.worstLse, report.lseError);
    if (report.count) {
      tally_.pairsCounted += report.count->pairs;
      tally_.pairsNoticeable += report.count->noticeable;
      tally_.worstCount = std::max(tally_.worstCount, report.count->worst);
    }
    if (report.share() > tally_.worstShare) {
      tally_.worstShare = report.share();
      tally_.worstCase = one.name.text;
    }
    if (!report.passed())
      tally_.failures.push_back(one.name.text + ": " + reference::explainFailure(report));
  }
}

Tally CheckPool::finish() {
  {
    const std::lock_guard lock(mutex_);
    isClosed_ = true;
  }
  changed_.notify_all();
  for (std::thread &thread : threads_)
    thread.join();
  return std::move(tally_);
}

} // namespace deft::gpu_test
