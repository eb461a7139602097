#include "runtime/capture/Capture.h"
#include "runtime/api/Call.h"
#include "runtime/api/Checks.h"
#include "runtime/api/Sized.h"

#include <deft/c/capture.h>

#include <limits>

using namespace deft;
using namespace deft::api;

deft_status deft_set_capture(const deft_capture_options *options) {
  return call({}, [&]() -> Result<void> {
    const auto known = readSized("deft_capture_options", options);
    if (!known)
      return known.error();
    if (!known->folder) {
      capture::stop();
      return {};
    }
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    if (*known->folder == '\0')
      return wrong("deft_capture_options::folder", "is empty");
    if (auto checked =
            checkRange("deft_capture_options::what", known->what, DEFT_CAPTURE_HOST, DEFT_CAPTURE_TENSORS);
        !checked)
      return checked;
    if (auto checked = checkRange("deft_capture_options::most_steps", known->most_steps, 0,
                                  std::numeric_limits<int>::max());
        !checked)
      return checked;
    if (auto checked = checkRange("deft_capture_options::most_bytes", known->most_bytes, 0, kMost); !checked)
      return checked;
    capture::Settings settings;
    settings.folder = known->folder;
    settings.readsDevice = known->what != DEFT_CAPTURE_HOST;
    settings.hasTensors = known->what == DEFT_CAPTURE_TENSORS;
    if (known->most_steps > 0)
      settings.mostSteps = known->most_steps;
    if (known->most_bytes > 0)
      settings.mostBytes = known->most_bytes;
    return capture::start(std::move(settings));
  });
}

deft_status deft_get_capture(deft_capture_state **state) {
  clear(state);
  return call({{"state", state}}, [&]() -> Result<void> {
    const capture::Written written = capture::written();
    Made<deft_capture_state> made;
    made->size = sizeof(deft_capture_state);
    made->folder = made.text(capture::settings().folder);
    made->ended = made.text(written.ended);
    made->bytes = written.bytes;
    made->steps = written.steps;
    made->is_on = capture::isOn();
    *state = made.release();
    return {};
  });
}
