#include "runtime/device/Timer.h"

#include <algorithm>

namespace deft::device {

using support::Result;

namespace {

/// Reads a buffer with all threads of the grid, 16 bytes a thread and step. Reading evicts the L2 cache
/// without leaving dirty lines, whose write-back would disturb what is measured. The sum is stored only
/// if it has a value that zeros cannot give, so that the loads are not dropped.
const char *const kEvictPtx = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry deft_evict_l2(.param .u64 buffer, .param .u64 bytes)
{
  .reg .pred %p<3>;
  .reg .b32 %r<12>;
  .reg .b64 %d<8>;
  ld.param.u64 %d1, [buffer];
  ld.param.u64 %d2, [bytes];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %nctaid.x;
  mad.lo.u32 %r5, %r1, %r2, %r3;
  mul.wide.u32 %d3, %r5, 16;
  mul.lo.u32 %r6, %r2, %r4;
  mul.wide.u32 %d4, %r6, 16;
  mov.u32 %r7, 0;
LOOP:
  setp.ge.u64 %p1, %d3, %d2;
  @%p1 bra DONE;
  add.u64 %d5, %d1, %d3;
  ld.global.v4.u32 {%r8, %r9, %r10, %r11}, [%d5];
  or.b32 %r7, %r7, %r8;
  or.b32 %r7, %r7, %r9;
  or.b32 %r7, %r7, %r10;
  or.b32 %r7, %r7, %r11;
  add.u64 %d3, %d3, %d4;
  bra LOOP;
DONE:
  setp.ne.u32 %p2, %r7, 0;
  @%p2 st.global.u32 [%d1], %r7;
  ret;
}
)";

/// The events and the graph of one measurement, given back whatever happens.
struct Handles {
  explicit Handles(const Device &device) : device(device) {}
  ~Handles() {
    if (executable)
      (void)device.api().graphExecDestroy(executable);
    if (graph)
      (void)device.api().graphDestroy(graph);
    for (cu::Event event : {start, end})
      if (event)
        (void)device.api().eventDestroy(event);
  }

  Result<void> capture(const std::function<Result<void>()> &enqueue) {
    const cu::Api &api = device.api();
    if (cu::Result result = api.streamBeginCapture(device.stream(), cu::kCaptureThreadLocal))
      return device.driver().error("cannot capture a graph", result);
    auto enqueued = enqueue();
    const cu::Result ended = api.streamEndCapture(device.stream(), &graph);
    if (!enqueued)
      return enqueued;
    if (ended != cu::kSuccess)
      return device.driver().error("cannot capture a graph", ended);
    return device.driver().check("cannot make a graph", api.graphInstantiate(&executable, graph, 0));
  }

  const Device &device;
  cu::Graph graph = nullptr;
  cu::GraphExec executable = nullptr;
  cu::Event start = nullptr, end = nullptr;
};

} // namespace

Result<Timer> Timer::create(std::shared_ptr<Device> device) {
  const Device::Current current(*device);
  constexpr int kEvictThreads = 256;
  auto evict = Kernel::load(device, kEvictPtx, "deft_evict_l2", kEvictThreads, 0);
  if (!evict)
    return evict.error();
  Buffer large(device);
  const std::size_t evictBytes = std::max<std::size_t>(3 * device->facts().l2Bytes, std::size_t{64} << 20);
  if (auto reserved = large.reserve(evictBytes, "the L2 eviction"); !reserved)
    return reserved.error();
  if (auto filled = large.fill(0, evictBytes); !filled)
    return filled.error();
  return Timer(std::move(device), std::move(*evict), std::move(large), evictBytes);
}

Result<Timing> Timer::time(const std::function<Result<void>()> &enqueue, const TimerOptions &options) const {
  const cu::Api &api = device_->api();
  const Driver &driver = device_->driver();
  const Device::Current current(*device_);
  Handles handles(*device_);
  if (auto captured = handles.capture(enqueue); !captured)
    return captured.error();
  for (cu::Event *event : {&handles.start, &handles.end})
    if (cu::Result result = api.eventCreate(event, cu::kEventDefault))
      return driver.error("cannot make an event", result);

  std::vector<double> times;
  // The eviction keeps the device busy until everything behind it is enqueued: launching is not timed.
  void *address = large_.as<void>();
  std::uint64_t bytes = evictBytes_;
  void *params[] = {&address, &bytes};
  for (int i = -1; i < std::max(options.repeats, 1); ++i) { // the first one warms up and is not counted
    if (auto launched = evict_.launch(static_cast<unsigned>(evict_.blocksAtOnce()), params); !launched)
      return launched.error();
    const cu::Result warmed =
        options.coldL2 ? cu::kSuccess : api.graphLaunch(handles.executable, device_->stream());
    for (cu::Result result : {warmed, api.eventRecord(handles.start, device_->stream()),
                              api.graphLaunch(handles.executable, device_->stream()),
                              api.eventRecord(handles.end, device_->stream())})
      if (result != cu::kSuccess)
        return driver.error("cannot run the timed graph", result);
    if (auto done = device_->synchronize("the timed kernels failed"); !done)
      return done.error();
    float milliseconds = 0;
    if (cu::Result result = api.eventElapsedTime(&milliseconds, handles.start, handles.end))
      return driver.error("cannot read the time", result);
    if (i >= 0)
      times.push_back(1000.0 * milliseconds);
  }
  std::sort(times.begin(), times.end());
  return Timing{times[times.size() / 2], times.front(), times.back()};
}

Result<Timing> timeOnDevice(const std::shared_ptr<Device> &device,
                            const std::function<Result<void>()> &enqueue, const TimerOptions &options) {
  const auto timer = Timer::create(device);
  if (!timer)
    return timer.error();
  return timer->time(enqueue, options);
}

} // namespace deft::device
