#pragma once

#include "tests/gpu/execution/Rig.h"

#include <nlohmann/json.hpp>

namespace deft::gpu_test {

/// Each puts what is wrong on the list and returns facts for the record.
nlohmann::json checkGrowingTree(const Subject &subject, Findings &findings);
nlohmann::json checkStalePlans(const Subject &subject, Findings &findings);
nlohmann::json checkThreads(const Subject &subject, Findings &findings);
nlohmann::json checkPlanningAhead(const Subject &subject, Findings &findings);
nlohmann::json checkLengths(const Subject &subject, Findings &findings);
nlohmann::json checkDrafts(const Subject &subject, Findings &findings);
nlohmann::json checkRoom(const Subject &subject, Findings &findings);
nlohmann::json checkMergedStates(const Subject &subject, Findings &findings);
nlohmann::json checkToldPages(const Subject &subject, Findings &findings);
nlohmann::json checkDevices(const std::vector<Subject> &subjects, Findings &findings); ///< one on each GPU

/// Times on the host, and of the watch on the GPU; wrong only where a call fails.
nlohmann::json measureHost(const Subject &subject, Findings &findings);
nlohmann::json measureWatch(const Subject &subject, Findings &findings);
nlohmann::json measureLayouts(const Subject &subject, Findings &findings); ///< of K and V
nlohmann::json measureDrafts(const Subject &subject, Findings &findings);  ///< a tree known to either

} // namespace deft::gpu_test
