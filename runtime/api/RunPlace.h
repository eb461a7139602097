#pragma once

namespace deft::api {

/// The memory that a call uses.
struct RunPlace {
  bool isGpu = false;
  int gpu = 0;
};

} // namespace deft::api
