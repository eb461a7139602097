#pragma once

#include <nlohmann/json.hpp>

#include <string>

/// Which features run where. The table is made from the legality of families, the declarations of engine
/// plug-ins and the records of GPU runs, so it cannot contradict them.
namespace deft::doctor {

/// {"attention": [{"feature", "words", "cpu": cell, "gpus": {arch: cell}}],
///  "interfaces": [{"words", "c", "cpp", "python"}],
///  "engines": {engine: {"package", "first", "last", "tested_with", "features": [...]}}}
/// A cell has `ok`, `by` (the family) or `why`, and `seen`: the GPU runs on record. Engines' features have
/// `state` (what tests without a GPU say), `why` or `seen`.
nlohmann::json supportTable();

/// The same as a page in Markdown.
std::string supportPage();

} // namespace deft::doctor
