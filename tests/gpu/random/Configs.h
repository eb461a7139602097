#pragma once

#include "compiler/config/Config.h"
#include "compiler/spec/Variant.h"
#include "compiler/target/Target.h"
#include "tests/gpu/random/Random.h"

#include <vector>

namespace deft::gpu_test {

/// The default config, then `more` others that are legal on the target, drawn at random from all families and
/// tile shapes, some of two phases. The first of the others has one phase, of a family that can be invariant.
/// At the end each other family has one of its own: they have few among all.
std::vector<config::Config> randomConfigs(Random &random, const spec::Variant &variant,
                                          const target::Target &target, int more);

} // namespace deft::gpu_test
