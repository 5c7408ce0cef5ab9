// A short notation for what the cores say and hear: messages, and what each core asks its driver to
// do.
//
// JSON would do for messages, but a conversation in it is read by nobody, and a diff of it is
// worse. Only what decides is written: ids, generations, steps, times, reasons.
#pragma once

#include <string>
#include <vector>

#include "job/core/terms/events.hpp"
#include "rendezvous/membership.hpp"
#include "tests/fakes/words.hpp"
#include "wire/messages.hpp"
#include "worker/core/member.hpp"

namespace elasticrun::fakes {

std::string to_text(const wire::ToWorker& message);
std::string to_text(const wire::FromWorker& message);
std::string to_text(const wire::ToAgent& order);
std::string to_text(const worker::core::MemberAction& action);
// A message for several has a line for each, all else has one.
std::vector<std::string> to_lines(const rendezvous::Action& action);
std::vector<std::string> to_lines(const job::JobAction& action);

// The other way round; they throw when the words are not exactly one message.
wire::ToWorker to_worker(Words& words);
wire::FromWorker from_worker(Words& words);

}  // namespace elasticrun::fakes
