// What must hold of every run, whatever happened in it.
#pragma once

#include <string>
#include <vector>

#include "job.hpp"

namespace elasticrun::engine_test {

// Each step counts as the highest generation that applied it; of those, every step is there, and
// each sample of an epoch is used exactly once. `samples` of an epoch, in `epochs` of all calls.
void check_lineage(const std::vector<std::vector<std::string>>& lines, std::int64_t samples,
                   std::int64_t epochs);

// The figures after "final CALL RANK".
std::vector<double> final_figures(const std::vector<std::string>& lines, int call = 1);

// Equal but for rounding: the sums are taken in another order in another world.
void check_close(const std::vector<double>& found, const std::vector<double>& expected);

}  // namespace elasticrun::engine_test
