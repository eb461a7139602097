#pragma once

#include "tuner/sparse/TuneSparse.h"

#include <string>

namespace deft::report {

/// The results in a sentence or two.
std::string resultText(const sparse::TuneReport &report);

/// Its part of a page: the sentence, and a row for each kind of lists, by budget and queries.
std::string sparseSection(const sparse::TuneReport &report);

} // namespace deft::report
