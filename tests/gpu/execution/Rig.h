#pragma once

#include "runtime/device/HostMemory.h"
#include "runtime/exec/Inputs.h"
#include "runtime/program/Program.h"

#include <deft/gpu.hpp>

#include <functional>
#include <mutex>
#include <string>
#include <vector>

/// What the checks of execution share: an attention on a GPU, streams and graphs, and a list of what was
/// wrong.
namespace deft::gpu_test {

/// The attention under test, by the public API, and its inside, which the oracle wants.
struct Subject {
  Gpu gpu;
  GpuAttention attention;
  program::Program program;
  std::vector<exec::ParamValue> params;
  std::shared_ptr<device::Device> device; ///< the same GPU, for memory, streams and graphs
  bool mustDeal = false; ///< tokens to warps, under the config that is used (PlanSummary::dealtItems)

  const spec::Variant &variant() const { return program.variant(); }
};

/// PACKAGE or PACKAGE:ATTENTION. Parameters without a default get a value that hides nothing.
Result<Subject> openSubject(const std::string &name, int gpu);

/// What went wrong, from all threads.
class Findings {
public:
  /// False: `what` goes on the list.
  bool require(bool isRight, const std::string &what);
  template <typename R>
  bool require(const R &result, const std::string &what)
    requires requires { result.error().message; }
  {
    return require(result.ok(), what + (result.ok() ? "" : ": " + result.error().message));
  }
  int count() const;
  std::vector<std::string> texts() const;

private:
  mutable std::mutex mutex_;
  std::vector<std::string> texts_;
};

/// A stream that does not wait for the null stream, as servers have them.
class Stream {
public:
  explicit Stream(std::shared_ptr<device::Device> device);
  ~Stream();
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;

  device::cu::Stream get() const { return stream_; }
  bool wait() const;

private:
  std::shared_ptr<device::Device> device_;
  device::cu::Stream stream_ = nullptr;
};

/// What `enqueue` puts on a stream, captured once.
class Graph {
public:
  Graph(std::shared_ptr<device::Device> device, const Stream &stream, const std::function<bool()> &enqueue);
  ~Graph();
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;

  bool isReady() const { return executable_ != nullptr; }
  bool launch(const Stream &stream) const;

private:
  std::shared_ptr<device::Device> device_;
  device::cu::Graph graph_ = nullptr;
  device::cu::GraphExec executable_ = nullptr;
};

/// Microseconds that a call takes on the host.
double timeUs(const std::function<void()> &call);

} // namespace deft::gpu_test
