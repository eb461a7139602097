#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/exec/Inputs.h"
#include "runtime/tree/CachePlacement.h"
#include "runtime/tree/KvTree.h"
#include "tools/deftc/common/Context.h"

#include <string>
#include <vector>

/// The way back from a dump (RunDump.h): a folder that it, or any other program, has written.
namespace deft::cli {

/// Tells the command's files what is read of it.
support::Result<void> readsInputs(Context &context, const std::string &folder);

/// The values of parameters: those of --param, else what spec.json says of one of the name, else the
/// defaults. A folder without spec.json says nothing.
support::Result<std::vector<exec::ParamValue>> dumpedParams(Context &context, const std::string &folder,
                                                            const spec::Variant &variant,
                                                            const std::vector<std::string> &assignments);

/// q.npy, k.npy and v.npy, rounded to the dtypes, for the folder's tree where it has been placed. Slots that
/// belong to no token hold NaN.
support::Result<exec::Inputs> readInputs(Context &context, const std::string &folder,
                                         const spec::Variant &variant, const tree::KvTree &tree,
                                         const tree::CachePlacement &placement,
                                         std::vector<exec::ParamValue> params);

} // namespace deft::cli
