// Properties that must hold for every run, whatever happened in it.
#pragma once

#include <string>
#include <vector>

#include "job.hpp"

namespace elasticrun::engine_test {

// For each step, the highest generation that applied it counts. With these, no step may be missing,
// and each sample of an epoch is used exactly once. `samples`: per epoch; `epochs`: of all calls.
void check_lineage(const std::vector<std::vector<std::string>>& lines, std::int64_t samples,
                   std::int64_t epochs);

// The figures that follow "final CALL RANK".
std::vector<double> final_figures(const std::vector<std::string>& lines, int call = 1);

// Checks that they are equal except for rounding, since another world adds in another order.
void check_close(const std::vector<double>& found, const std::vector<double>& expected);

}  // namespace elasticrun::engine_test
