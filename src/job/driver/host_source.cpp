// See host_source.hpp.
#include "job/driver/host_source.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <tuple>

#include "base/boot_clock.hpp"
#include "base/file.hpp"
#include "job/driver/hooks.hpp"
#include "launcher/executors/file_thread.hpp"

namespace elasticrun::job::driver {
namespace {

// Checking the times of a small file five times a second costs nothing and works on any file
// system; inotify sees no change that another machine makes.
constexpr Duration file_interval = std::chrono::milliseconds(200);
constexpr Duration file_silence = std::chrono::seconds(10);  // until its silence is reported
constexpr std::size_t file_bytes_max = 16u << 20;
constexpr int words_lines_max = 20;

// Inode, size and modification time. A file that was replaced within one tick of the clock differs
// at least in its inode or size.
using Stamp = std::tuple<ino_t, off_t, std::int64_t, std::int64_t>;

}  // namespace

std::string source_name(const JobSpec& spec) {
  return spec.host_discovery.empty() ? spec.hosts_file : "--host-discovery";
}

// The result of one look at the file.
struct HostSource::Look {
  std::optional<std::string> away;  // why the file cannot be read
  std::optional<Stamp> stamp;       // set when the file has changed since it was read last
  Result<std::string> text = ok(std::string());
};

struct HostSource::State {
  State(boost::asio::io_context& io, const JobSpec& spec)
      : timer(io), notes(source_name(spec), !spec.host_discovery.empty()) {}

  static Look look_at(const std::string& path, const std::optional<Stamp>& seen);

  boost::asio::steady_timer timer;
  std::optional<launcher::executors::FileThread> files;
  bool silent = false;  // it was reported that the file does not answer
  std::optional<launcher::executors::HookProcess> discovery;
  std::vector<launcher::hosts::Host> hosts;  // as last reported
  std::optional<Stamp> seen;                 // of the file when it was read last
  std::string words;                         // the program's standard error, as last reported
  hosts::SourceNotes notes;
  bool stopped = false;
};

// Reading a pipe uses up its content. So a host file that is a pipe is read only once, at the
// start, and is never reported as missing.
HostSource::Look HostSource::State::look_at(const std::string& path,
                                            const std::optional<Stamp>& seen) {
  const auto last_error = [] { return std::generic_category().message(errno); };
  struct stat now {};
  if (::stat(path.c_str(), &now) != 0) return {.away = last_error()};
  if (!S_ISREG(now.st_mode))
    return {.away = seen ? std::optional<std::string>("it is no longer a file") : std::nullopt};
  // A change of permissions does not change the time of the contents, so check them each time.
  if (::access(path.c_str(), R_OK) != 0) return {.away = last_error()};
  const Stamp stamp{now.st_ino, now.st_size, now.st_mtim.tv_sec, now.st_mtim.tv_nsec};
  if (stamp == seen) return {};
  return {.away = {}, .stamp = stamp, .text = read_file(path, file_bytes_max)};
}

HostSource::HostSource(boost::asio::io_context& io, const JobSpec& spec, Handlers handlers)
    : spec_(spec), handlers_(std::move(handlers)), state_(new State(io, spec)) {
  state_->hosts = spec.hosts;
  if (!spec.host_discovery.empty())
    state_->discovery.emplace(io, discovery_hook(spec));
  else if (!spec.hosts_file.empty())
    state_->files.emplace(io);
}

HostSource::~HostSource() = default;

void HostSource::start() {
  if (state_->stopped) return;  // the job has already ended
  say_words(spec_.discovery_words);
  if (state_->discovery)
    discover_later();
  else if (state_->files)
    look_at_file_later();
}

void HostSource::stop() {
  state_->stopped = true;
  state_->discovery.reset();
  state_->files.reset();
  state_->timer.cancel();
}

// ---------------------------------------------------------------- the file

void HostSource::look_at_file_later() {
  state_->timer.expires_after(file_interval);
  state_->timer.async_wait([this](const boost::system::error_code& ec) {
    if (!ec && !state_->stopped) look_at_file();
  });
}

void HostSource::look_at_file() {
  say_when_silent();
  state_->files->run([this, path = spec_.hosts_file, seen = state_->seen] {
    return [this, look = State::look_at(path, seen)] {
      state_->timer.cancel();
      if (std::exchange(state_->silent, false))
        handlers_.line(fmt::format("the host file {} answers again", spec_.hosts_file));
      take_look(look);
      if (!state_->stopped) look_at_file_later();
    };
  });
}

void HostSource::say_when_silent() {
  state_->timer.expires_after(file_silence);
  state_->timer.async_wait([this](const boost::system::error_code& ec) {
    const bool answered = state_->timer.expiry() > boost::asio::steady_timer::clock_type::now();
    if (ec || state_->stopped || answered) return;
    state_->silent = true;
    handlers_.line(
        fmt::format("the host file {} has not answered for {:.0f} s; the hosts stay as they are",
                    spec_.hosts_file, seconds(file_silence)));
  });
}

void HostSource::take_look(const Look& look) {
  // Until the file is first seen here, the hosts are those that were read at the start.
  if (look.away && !state_->seen) return;
  if (look.away) return note(state_->notes.away(*look.away, boot_now()));
  note(state_->notes.back());
  if (!look.stamp) return;
  if (look.text && !launcher::hosts::is_complete(*look.text)) return;  // it is still being written
  state_->seen = look.stamp;
  if (look.text)
    take(launcher::hosts::parse_hosts(*look.text, spec_.hosts_file));
  else
    take(look.text.error());
}

// ---------------------------------------------------------------- the program

void HostSource::discover_later() {
  state_->timer.expires_after(spec_.deadlines.discovery_interval);
  state_->timer.async_wait([this](const boost::system::error_code& ec) {
    if (ec || state_->stopped) return;
    state_->discovery->run({}, [this](launcher::executors::HookAnswer found) {
      say_words(found.stderr_text);
      if (found.output)
        take(launcher::hosts::parse_hosts(*found.output, "--host-discovery"));
      else
        take(discovery_trouble(spec_, "--host-discovery", found.output.error()));
      if (!state_->stopped) discover_later();
    });
  });
}

// Prints what the program wrote to standard error, unless it is the same as the last time.
void HostSource::say_words(const std::string& words) {
  if (words == state_->words) return;
  state_->words = words;
  std::istringstream lines(words);
  int count = 0;
  for (std::string line; std::getline(lines, line) && count < words_lines_max; ++count)
    handlers_.line("host discovery: " + line);
}

// ---------------------------------------------------------------- both

void HostSource::take(Result<std::vector<launcher::hosts::Host>> hosts) {
  if (hosts) {
    *hosts = launcher::hosts::chosen(std::move(*hosts), spec_.host_filter);
    if (std::ranges::count(*hosts, false, &launcher::hosts::Host::spare) == 0)
      hosts = Error{fmt::format(
          "{}: {}", source_name(spec_),
          hosts->empty() ? "--include and --exclude leave no host" : "every host is a spare")};
  }
  if (!hosts) return note(state_->notes.trouble(hosts.error().text));
  note(state_->notes.well());
  if (*hosts == state_->hosts) return;
  state_->hosts = *hosts;
  handlers_.hosts(*hosts);
}

void HostSource::note(const std::optional<HostsNoted>& note) {
  if (note) handlers_.note(*note);
}

}  // namespace elasticrun::job::driver
