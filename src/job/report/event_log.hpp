// Reads what --events wrote: turns each line back into an event.
//
// The log of a job that was killed may end in the middle of a line, so a damaged last line is
// skipped silently; damage anywhere else means that the file is not such a log, or not a complete
// one. Members that an event cannot hold (null, or what a later version adds) are skipped.
//
// Several jobs may have written into one file, one after the other or at the same time. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "job/report/event.hpp"

namespace elasticrun::job::report {

// `file` names the log in errors: "job.jsonl:7: ...". The member `time` becomes an ordinary field.
Result<std::vector<Event>> read_events(std::string_view text, std::string_view file);

// What one job wrote.
struct Run {
  std::string job;  // its id; empty: written by a version that did not record it
  std::vector<Event> events;
};

// The jobs of a log, in the order in which they began. Events without an id belong to one job until
// the next job_started without one.
std::vector<Run> runs_of(const std::vector<Event>& events);

// The value of a field; nothing (or an empty value) where it is missing or has another type.
std::optional<double> number(const Event& event, std::string_view field);
std::string text(const Event& event, std::string_view field);
std::vector<std::string> list(const Event& event, std::string_view field);

}  // namespace elasticrun::job::report
