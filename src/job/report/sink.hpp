// Where a job's messages, output and events go: a terminal and files. No function here may wait for
// any of them, because the calling thread also sends the heartbeats.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/ids.hpp"

namespace elasticrun::job::report {

enum class LogLevel { detail, info, error };

// Which worker some output comes from, for labels and file names.
struct WorkerLabel {
  WorkerId worker;
  HostId host;
  std::string host_name;
  std::int32_t slot = 0;
  std::int32_t rank = -1;  // -1: not in a world yet
  bool gone = false;       // it has exited; its last lines may still arrive
};

class Sink {
 public:
  virtual ~Sink() = default;
  // A message of elasticrun itself. It may quote what others wrote: the sink makes it one line.
  virtual void log(LogLevel level, std::string_view text) = 0;
  // Whole lines of a worker, newlines included. stream: 1 (standard output) or 2 (standard error).
  virtual void output(const WorkerLabel& label, std::int32_t stream, std::string_view text) = 0;
  // That worker has exited.
  virtual void gone(const WorkerLabel& label) = 0;
  // Whether workers should stop printing for a moment: a reader is slow, but it does read.
  virtual bool congested() = 0;
  // An event: one JSON object without a newline.
  virtual void event(std::string_view json) = 0;
};

}  // namespace elasticrun::job::report
