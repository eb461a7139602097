#pragma once

#include "compiler/config/Config.h"
#include "compiler/spec/Variant.h"
#include "compiler/support/Result.h"
#include "compiler/target/Target.h"
#include "runtime/config_cache/Rules.h"

namespace deft::config_cache {

/// Whether the config is one of those that the schedule allows: its partition (`auto` allows all), its chunk
/// and the tiles of its phases. What the schedule does not name is free.
support::Result<void> checkSchedule(const spec::ScheduleSpec &schedule, const config::Config &config);

/// What a GPU of this target can run of a variant, or with none the CPU; its schedule has its say. Both
/// arguments must outlive the function that is returned.
LegalityCheck legalityFor(const spec::Variant &variant, const target::Target *target);
LegalityCheck legalityFor(spec::Variant &&variant, const target::Target *target) = delete;

/// What to ask of applyRules() for a variant, whose `untuned` config is the one of rule `heuristic`. The
/// variant and the target must outlive the request.
Request requestFor(const spec::Variant &variant, const TreeClass &treeClass, const target::Target *target,
                   config::Config untuned);
Request requestFor(spec::Variant &&variant, const TreeClass &treeClass, const target::Target *target,
                   config::Config untuned) = delete;

} // namespace deft::config_cache
