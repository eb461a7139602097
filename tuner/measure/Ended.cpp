#include "tuner/measure/Ended.h"

namespace deft::measure {

const char *toString(Ended ended) {
  switch (ended) {
  case Ended::Budget:
    return "budget";
  case Ended::Interrupted:
    return "interrupted";
  case Ended::Complete:
    break;
  }
  return "complete";
}

} // namespace deft::measure
