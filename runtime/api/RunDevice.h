#pragma once

namespace deft::api {

/// The device whose memory a call uses.
struct RunDevice {
  bool isGpu = false;
  int gpu = 0;
};

} // namespace deft::api
