// What the user sees: labelled lines of the workers, our own lines, the workers' log files and the
// event file.
//
// None of them may stop the job's heartbeats (Ctrl-S, a pipe without a reader, a file server that
// has gone), so each kind has a writer, with a thread and a queue with a limit. For a reader that
// is slow the workers wait, as they would without us. For a reader that has read nothing for some
// seconds they do not wait: lines that do not fit into the queue then are dropped, counted and
// reported.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cli/run/writer.hpp"
#include "job/report/sink.hpp"
#include "job/spec.hpp"

namespace elasticrun::cli::run {

class Terminal : public job::report::Sink {
 public:
  // Opens the event file and the log folder, which is created if it is missing; an error names the
  // one that failed. If the event file is a named pipe, this waits until it has a reader, as any
  // program does.
  static Result<std::unique_ptr<Terminal>> open(const job::JobSpec& spec);
  ~Terminal() override;

  // Writes what is queued. If `patient`, this waits for the terminal as long as its readers take,
  // like any program whose output goes to less(1), and for files until nothing has been written for
  // some seconds; otherwise for one second each. If something is still not written then, the loss
  // is reported and the process ends here with `exit_code`.
  void finish(int exit_code, bool patient);

  void log(job::report::LogLevel level, std::string_view text) override;
  void output(const job::report::WorkerLabel& label, std::int32_t stream,
              std::string_view text) override;
  void gone(const job::report::WorkerLabel& label) override;
  bool congested() override;
  void event(std::string_view json) override;

 private:
  // The log files or the event file, and what messages call them.
  struct Record {
    std::string name;                // "the log folder ..."
    const char* contents;            // "lines" or "events"
    std::unique_ptr<Writer> writer;  // null: the user did not ask for these files
  };

  explicit Terminal(const job::JobSpec& spec);
  Result<void> open_logs(const std::string& folder);
  Result<void> open_events(const std::string& file);
  void show(const char* stream, std::string_view text);
  void put(const Record& record, const std::string& file, std::string_view text, bool closes);
  bool finish(const Record& record, const Writer::Patience& patience);
  void tell_refused(std::size_t lines);
  void tell_trouble(const std::string& name, int error);  // may be called from any thread

  const bool label_, quiet_, explain_;
  const job::Streams streams_;
  net::Fd log_folder_, event_file_;
  Writer screen_;
  Record logs_, events_;  // after screen_, because their threads put messages into it
};

}  // namespace elasticrun::cli::run
