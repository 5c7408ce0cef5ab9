// The question to the program of --policy exec: and its answer, both JSON as described in
// elasticrun-policies(7). Users' programs depend on this format, so it is written out here and not
// derived from the C++ types, which may change.
#pragma once

#include <string>

#include "autoscaler/policy.hpp"
#include "base/result.hpp"

namespace elasticrun::job::report {

// The question as one line, including its newline.
std::string question_text(const autoscaler::Question& question);

// `output` is what the program has printed, or why there is nothing. Errors of the same kind have
// the same text up to the first digit, colon or quote.
Result<autoscaler::Advice> read_advice(const Result<std::string>& output);

}  // namespace elasticrun::job::report
