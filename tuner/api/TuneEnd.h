#pragma once

#include "tuner/measure/Ended.h"

#include <deft/tune.hpp>

namespace deft::api {

inline TuneEnd toTuneEnd(measure::Ended ended) {
  switch (ended) {
  case measure::Ended::Budget:
    return TuneEnd::Budget;
  case measure::Ended::Interrupted:
    return TuneEnd::Cancelled;
  case measure::Ended::Complete:
    break;
  }
  return TuneEnd::Complete;
}

} // namespace deft::api
