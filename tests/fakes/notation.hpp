// A short notation for what goes into the cores and comes out of them: messages, and what each core
// asks its driver to do.
//
// JSON would do for messages, but conversations in it, and their diffs, are hard to read. Only what
// matters for decisions is written: ids, generations, steps, times, reasons.
#pragma once

#include <string>
#include <vector>

#include "job/core/terms/events.hpp"
#include "rendezvous/membership.hpp"
#include "tests/fakes/words.hpp"
#include "wire/agent/messages.hpp"
#include "wire/messages.hpp"
#include "worker/core/member.hpp"

namespace elasticrun::fakes {

std::string to_text(const wire::ToWorker& message);
std::string to_text(const wire::FromWorker& message);
std::string to_text(const wire::agent::ToAgent& order);
std::string to_text(const worker::core::MemberAction& action);
// A message to several workers has a line for each; everything else has one line.
std::vector<std::string> to_lines(const rendezvous::Action& action);
std::vector<std::string> to_lines(const job::JobAction& action);

// The other direction: both throw when the words are not exactly one message.
wire::ToWorker to_worker(Words& words);
wire::FromWorker from_worker(Words& words);

}  // namespace elasticrun::fakes
