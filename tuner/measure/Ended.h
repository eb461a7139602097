#pragma once

namespace deft::measure {

/// How a measuring session ended.
enum class Ended { Complete, Budget, Interrupted };

/// As written in journals.
const char *toString(Ended ended);

} // namespace deft::measure
