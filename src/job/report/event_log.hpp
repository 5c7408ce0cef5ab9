// Reading what --events wrote: the way back from a line to an event.
//
// A log of a job that was killed ends in the middle of a line, so a damaged last line is left out
// in silence; damage anywhere else means that this is no such log, or not a whole one. Members that
// an event cannot hold (null, what a later version adds) are left out as well.
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

// `file` is what errors call it: "job.jsonl:7: ...". `time` becomes a field like others.
Result<std::vector<Event>> read_events(std::string_view text, std::string_view file);

// What one job wrote.
struct Run {
  std::string job;  // its id; empty: a version wrote it that did not say
  std::vector<Event> events;
};

// The jobs of a log, in the order in which they began. Events without an id belong to one job until
// the next job_started without one.
std::vector<Run> runs_of(const std::vector<Event>& events);

// Of a field; nothing where it is missing or of another kind.
std::optional<double> number(const Event& event, std::string_view field);
std::string text(const Event& event, std::string_view field);
std::vector<std::string> list(const Event& event, std::string_view field);

}  // namespace elasticrun::job::report
