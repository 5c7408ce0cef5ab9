// How the program of --policy exec: is asked and how it answers: JSON, as elasticrun-policies(7)
// has it. It is a promise to programs of other people, so it is written apart from the types that
// it is made of: those may change.
#pragma once

#include <string>

#include "autoscaler/policy.hpp"
#include "base/result.hpp"

namespace elasticrun::job::report {

// One line, with its newline.
std::string question_text(const autoscaler::Question& question);

// What the program has printed, or why there is nothing. An error begins with the same words for
// the same kind of trouble, up to the first figure, colon or quote.
Result<autoscaler::Advice> read_advice(const Result<std::string>& output);

}  // namespace elasticrun::job::report
