#pragma once

namespace deft::measure {

/// How a session of measuring came to its end.
enum class Ended { Complete, Budget, Interrupted };

/// As journals have it.
const char *toString(Ended ended);

} // namespace deft::measure
