// See terminal.hpp.
#include "cli/run/terminal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <utility>

#include "base/exit_code.hpp"
#include "base/line.hpp"
#include "base/text.hpp"
#include "cli/run/log_name.hpp"

namespace elasticrun::cli::run {
namespace {

constexpr std::size_t lines_bytes_max = 32u << 20;  // room for the output in flight from many hosts
constexpr std::size_t events_bytes_max = 2u << 20;  // an hour of a small job with the defaults

constexpr Duration file_standstill = std::chrono::seconds(10);
constexpr Duration last_write_limit = std::chrono::seconds(1);

// The names of the two files of the writer for the screen.
constexpr const char* standard_output = "1";
constexpr const char* standard_error = "2";

net::Fd duplicate(int descriptor) { return net::Fd(::fcntl(descriptor, F_DUPFD_CLOEXEC, 3)); }

net::Fd open_stream(const std::string& stream) {
  return duplicate(stream == standard_output ? STDOUT_FILENO : STDERR_FILENO);
}

// A host that joins by itself chooses a part of the name. log_name() keeps the file in this folder;
// O_NOFOLLOW keeps a symbolic link in the folder from leading out of it again.
net::Fd open_log(int folder, const std::string& name) {
  constexpr int flags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
  return net::Fd(::openat(folder, name.c_str(), flags, 0666));
}

// A reader that has closed the pipe (head) does not want the rest.
bool is_a_loss(int error) { return error != EPIPE; }

}  // namespace

Result<std::unique_ptr<Terminal>> Terminal::open(const job::JobSpec& spec) {
  std::unique_ptr<Terminal> terminal(new Terminal(spec));
  if (auto opened = terminal->open_logs(spec.log_dir); !opened) return opened.error();
  if (auto opened = terminal->open_events(spec.events_file); !opened) return opened.error();
  return terminal;
}

Terminal::Terminal(const job::JobSpec& spec)
    : label_(spec.label),
      quiet_(spec.quiet),
      explain_(spec.explain),
      streams_(spec.streams),
      screen_("er-screen", lines_bytes_max,
              {open_stream,
               [this](const std::string&, int error) {
                 if (is_a_loss(error)) tell_trouble("output cannot be written", error);
               }}),
      logs_{"the log folder " + spec.log_dir, "lines", nullptr},
      events_{"the event file " + spec.events_file, "events", nullptr} {}

Result<void> Terminal::open_logs(const std::string& folder) {
  if (folder.empty()) return {};
  std::error_code ec;
  std::filesystem::create_directories(folder, ec);
  if (!ec) {
    log_folder_ = net::Fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (log_folder_.get() < 0) ec.assign(errno, std::generic_category());
  }
  if (ec) return Error{fmt::format("--log-dir {}: {}", folder, ec.message())};
  Writer::Handlers handlers{
      [this](const std::string& name) { return open_log(log_folder_.get(), name); },
      [this, folder](const std::string& name, int error) {
        tell_trouble(fmt::format("{}/{}", folder, name), error);
      }};
  logs_.writer = std::make_unique<Writer>("er-logs", lines_bytes_max, std::move(handlers));
  return {};
}

Result<void> Terminal::open_events(const std::string& file) {
  if (file.empty()) return {};
  event_file_ = net::Fd(::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
  if (event_file_.get() < 0)
    return Error{fmt::format("--events {}: {}", file, net::error_text(errno))};
  Writer::Handlers handlers{
      [this](const std::string&) { return duplicate(event_file_.get()); },
      [this](const std::string&, int error) { tell_trouble(events_.name, error); }};
  events_.writer = std::make_unique<Writer>("er-events", events_bytes_max, std::move(handlers));
  return {};
}

Terminal::~Terminal() { finish(exit_code::internal, false); }

// ---------------------------------------------------------------- the end

void Terminal::finish(int exit_code, bool patient) {
  const Writer::Patience hurry{.in_all = last_write_limit};
  const Writer::Patience for_files =
      patient ? Writer::Patience{.standstill = file_standstill} : hurry;
  bool written = finish(logs_, for_files);
  written = finish(events_, for_files) && written;
  if (const std::size_t lines = screen_.refused_lines(); lines > 0) tell_refused(lines);
  written = screen_.finish(patient ? Writer::Patience{} : hurry) && written;
  if (!written) ::_exit(exit_code);  // a blocked thread cannot be ended, but the process can
}

bool Terminal::finish(const Record& record, const Writer::Patience& patience) {
  if (!record.writer) return true;
  const bool written = record.writer->finish(patience);
  if (const std::size_t lines = record.writer->unwritten_lines(); lines > 0)
    log(job::report::LogLevel::error,
        fmt::format("{}: {} {} could not be written", record.name, lines, record.contents));
  return written;
}

// ---------------------------------------------------------------- what is shown and recorded

void Terminal::log(job::report::LogLevel level, std::string_view text) {
  if (level != job::report::LogLevel::error && quiet_) return;
  if (level == job::report::LogLevel::detail && !explain_) return;
  screen_.put_own(standard_error, fmt::format("elasticrun: {}\n", as_own_line(text)));
}

void Terminal::show(const char* stream, std::string_view text) {
  const WriteQueue::Gap gap = screen_.put(stream, text);
  if (gap.ended_after > 0) tell_refused(gap.ended_after);
}

void Terminal::put(const Record& record, const std::string& file, std::string_view text,
                   bool closes) {
  if (!record.writer) return;
  const WriteQueue::Gap gap = record.writer->put(file, text, closes);
  if (gap.begins)
    log(job::report::LogLevel::error,
        fmt::format("{} takes no more: {} are lost until it does; the job continues", record.name,
                    record.contents));
  if (gap.ended_after > 0)
    log(job::report::LogLevel::error, fmt::format("{} takes {} again; {} were lost", record.name,
                                                  record.contents, gap.ended_after));
}

void Terminal::output(const job::report::WorkerLabel& label, std::int32_t stream,
                      std::string_view text) {
  if (streams_.logged(label.slot, stream)) put(logs_, log_name(label, stream), text, label.gone);
  if (!streams_.shown(label.slot, stream)) return;
  const char* const shown_on = stream == 1 ? standard_output : standard_error;
  if (!label_) return show(shown_on, text);
  const std::string prefix = label.rank < 0 ? fmt::format("{}:-: ", label.host_name)
                                            : fmt::format("{}:{}: ", label.host_name, label.rank);
  std::string labelled;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size() - 1) + 1;
    labelled += prefix;
    labelled += text.substr(0, end);
    text.remove_prefix(end);
  }
  show(shown_on, labelled);
}

// Lines still in a pipe when the worker ended arrive after this, and open its log file again.
void Terminal::gone(const job::report::WorkerLabel& label) {
  if (!logs_.writer) return;
  for (const std::int32_t stream : {1, 2}) logs_.writer->close(log_name(label, stream));
}

bool Terminal::congested() {
  return screen_.congested() || (logs_.writer && logs_.writer->congested());
}

void Terminal::event(std::string_view json) { put(events_, "", fmt::format("{}\n", json), false); }

void Terminal::tell_refused(std::size_t lines) {
  log(job::report::LogLevel::error,
      fmt::format("{} of output {} not shown, because the reader was too slow",
                  counted(static_cast<std::int64_t>(lines), "line"), lines == 1 ? "was" : "were"));
}

// A full disk loses logs or events, but never stops the training.
void Terminal::tell_trouble(const std::string& name, int error) {
  const std::string why =
      error == ELOOP ? "a symbolic link is not followed" : net::error_text(error);
  log(job::report::LogLevel::error, fmt::format("{}: {}; the job continues without it", name, why));
}

}  // namespace elasticrun::cli::run
