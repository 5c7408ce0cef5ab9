// Where a job's words go: a terminal and files. Nothing here may wait for any of them: the thread
// that calls sends the heartbeats.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/ids.hpp"

namespace elasticrun::job::report {

enum class LogLevel { detail, info, error };

// One worker's place, for labels and file names.
struct WorkerLabel {
  WorkerId worker;
  HostId host;
  std::string host_name;
  std::int32_t slot = 0;
  std::int32_t rank = -1;  // -1: not in a world yet
  bool gone = false;       // it has exited; the last of its lines may still come
};

class Sink {
 public:
  virtual ~Sink() = default;
  // What the program itself has to say; one line without a newline.
  virtual void say(LogLevel tone, std::string_view text) = 0;
  // Whole lines of a worker, newlines included. stream: 1 or 2.
  virtual void output(const WorkerLabel& speaker, std::int32_t stream, std::string_view text) = 0;
  // That worker has exited.
  virtual void gone(const WorkerLabel& speaker) = 0;
  // It would rather have no more output for a moment: its reader is slow, but reads.
  virtual bool crowded() = 0;
  // One JSON object without a newline.
  virtual void event(std::string_view json) = 0;
};

}  // namespace elasticrun::job::report
