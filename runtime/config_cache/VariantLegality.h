#pragma once

#include "compiler/config/Config.h"
#include "compiler/spec/Variant.h"
#include "compiler/support/Result.h"
#include "compiler/target/Target.h"
#include "runtime/config_cache/Rules.h"

namespace deft::config_cache {

/// Whether the schedule allows the config: its partition (`auto` allows all), its chunk and the tiles of its
/// phases. Everything that the schedule does not name is free.
support::Result<void> checkSchedule(const spec::ScheduleSpec &schedule, const config::Config &config);

/// Checks whether a GPU of this target (null: the CPU) can run a config for a variant, and whether its
/// schedule allows it. Both arguments must outlive the returned function.
LegalityCheck legalityFor(const spec::Variant &variant, const target::Target *target);
LegalityCheck legalityFor(spec::Variant &&variant, const target::Target *target) = delete;

/// The request to applyRules() for a variant; its `untuned` config is the one of rule `heuristic`. The
/// variant and the target must outlive the request.
Request requestFor(const spec::Variant &variant, const TreeClass &treeClass, const target::Target *target,
                   config::Config untuned);
Request requestFor(spec::Variant &&variant, const TreeClass &treeClass, const target::Target *target,
                   config::Config untuned) = delete;

} // namespace deft::config_cache
