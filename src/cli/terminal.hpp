// What a person sees: labelled lines of the workers, our own lines, a file per worker, the event
// file.
//
// A terminal that stands still (Ctrl-S, a full pipe) must not stop the job's heartbeat, so a thread
// of its own writes, from a queue with a limit. For a reader that is slow the workers wait, as they
// would without us; for one that has stood still for some seconds they do not: what does not fit
// then is counted and said. Files are written at once: they are the record, the terminal is the
// view.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "job/sink.hpp"
#include "job/spec.hpp"

namespace elasticrun::cli {

class Terminal : public job::Sink {
 public:
  // Opens the event file and makes the log folder; an error names what could not be made.
  static Result<std::unique_ptr<Terminal>> open(const job::JobSpec& spec);
  ~Terminal() override;

  // Writes what is queued. With patience for as long as its readers take, as any program does whose
  // output goes to less(1); without, a second, and then the process ends here with this code.
  void finish(int exit_code, bool patient);

  void say(job::Tone tone, std::string_view text) override;
  void output(const job::Speaker& speaker, std::int32_t stream, std::string_view text) override;
  bool crowded() override;
  void event(std::string_view json) override;

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Closer>;
  struct Chunk {
    int descriptor;
    std::string text;
  };

  explicit Terminal(const job::JobSpec& spec);
  void put(int descriptor, std::string text);
  void write_out();
  static void tell(std::string_view text);  // from the writer
  void to_file(std::FILE* file, std::string_view text, const std::string& name);

  bool label_, quiet_, explain_;
  std::string log_dir_;
  File events_;
  std::map<std::string, File> logs_;
  bool file_trouble_told_ = false;
  bool write_trouble_told_ = false;  // the writer's

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Chunk> queue_;
  std::size_t queued_bytes_ = 0;
  std::size_t dropped_ = 0;
  std::chrono::steady_clock::time_point progress_;  // when the reader last took something
  bool closing_ = false;
  bool written_ = false;
  std::thread writer_;
};

}  // namespace elasticrun::cli
