// What a person sees: labelled lines of the workers, our own lines, a file per worker, the event
// file.
//
// None of them may stop the job's heartbeat (Ctrl-S, a pipe that nobody reads, a file server that
// has gone), so each kind has a writer, with a thread and a queue with a limit. For a reader that
// is slow the workers wait, as they would without us; for one that has stood still for some seconds
// they do not: what does not fit then is counted and said.
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
  // Opens the event file and the log folder, which is made when it is not there; an error names
  // what could not be. An event file that is a pipe waits for its reader, as any program does.
  static Result<std::unique_ptr<Terminal>> open(const job::JobSpec& spec);
  ~Terminal() override;

  // Writes what is queued. With patience the terminal is waited for as long as its readers take, as
  // by any program whose output goes to less(1), and a file until it stands still; without, each a
  // second. What is not written then is said, and the process ends here with this code.
  void finish(int exit_code, bool patient);

  void say(job::report::LogLevel tone, std::string_view text) override;
  void output(const job::report::WorkerLabel& speaker, std::int32_t stream,
              std::string_view text) override;
  void gone(const job::report::WorkerLabel& speaker) override;
  bool crowded() override;
  void event(std::string_view json) override;

 private:
  // Files of one kind, and what a person is told about them.
  struct Record {
    std::string name;
    const char* contents;
    std::unique_ptr<Writer> writer;  // none: not wanted
  };

  explicit Terminal(const job::JobSpec& spec);
  Result<void> open_logs(const std::string& folder);
  Result<void> open_events(const std::string& file);
  void show(const char* stream, std::string_view text);
  void put(const Record& record, const std::string& file, std::string_view text, bool closes);
  bool finish(const Record& record, const Writer::Patience& patience);
  void tell_refused(std::size_t lines);
  void tell_trouble(const std::string& name, int error);  // from any thread

  const bool label_, quiet_, explain_;
  net::Fd log_folder_, event_file_;
  Writer screen_;
  Record logs_, events_;  // their threads speak to the screen
};

}  // namespace elasticrun::cli::run
