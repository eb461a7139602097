#pragma once

namespace deft::api {

/// Whose memory a call takes.
struct RunPlace {
  bool isGpu = false;
  int gpu = 0;
};

} // namespace deft::api
