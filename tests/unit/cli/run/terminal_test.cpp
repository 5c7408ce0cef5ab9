// An event file that accepts no more events is reported, and delays nothing else.
#include "cli/run/terminal.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

using namespace elasticrun;
using namespace elasticrun::cli;
using namespace elasticrun::cli::run;

namespace {

namespace fs = std::filesystem;

void wait_until(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) REQUIRE(std::chrono::steady_clock::now() < deadline);
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Standard error goes to a file, --events to a pipe, --log-dir to a folder.
struct Stage {
  Stage() {
    folder = fs::temp_directory_path() / "terminal-XXXXXX";
    REQUIRE(::mkdtemp(folder.data()));
    spec.events_file = folder + "/events";
    spec.log_dir = folder + "/logs";
    REQUIRE(::mkfifo(spec.events_file.c_str(), 0600) == 0);
    pipe = net::Fd(::open(spec.events_file.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    const net::Fd words(::open((folder + "/words").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    saved = net::Fd(::dup(STDERR_FILENO));
    ::dup2(words.get(), STDERR_FILENO);
  }
  ~Stage() {
    ::dup2(saved.get(), STDERR_FILENO);
    fs::remove_all(folder);
  }
  std::string words() const { return text_of(folder + "/words"); }
  // Reads what is in the pipe.
  void take() {
    std::string part(1 << 16, '\0');
    for (ssize_t n; (n = ::read(pipe.get(), part.data(), part.size())) > 0;)
      events.append(part, 0, static_cast<std::size_t>(n));
  }

  std::string folder, events;
  job::JobSpec spec;
  net::Fd pipe, saved;
};

}  // namespace

TEST_CASE("a gap in the events is reported when it begins and when it ends") {
  Stage stage;
  const std::string name = "the event file " + stage.spec.events_file;
  std::size_t put = 0, kept = 0;
  {
    const auto terminal = Terminal::open(stage.spec).value();
    const job::report::WorkerLabel label{WorkerId(1), HostId(1), "../host", 0};
    const std::string begins = fmt::format(
        "elasticrun: {} takes no more: events are lost until it does; the job continues\n", name);
    // Long events, so that a few thousand fill the queue.
    const std::string rest(4000, '-');
    const auto put_event = [&] {
      terminal->event(fmt::format("{{\"event\":{},\"rest\":\"{}\"}}", put++, rest));
    };
    wait_until([&] {
      for (int i = 0; i < 100; ++i) put_event();
      return !stage.words().empty();
    });
    CHECK(stage.words() == begins);
    // The other kinds of output continue.
    terminal->output(label, 2, "hello\n");
    const std::string log = stage.spec.log_dir + "/_._host.0.worker1.err";
    wait_until(
        [&] { return text_of(log) == "hello\n" && stage.words().ends_with("../host:-: hello\n"); });
    wait_until([&] {
      stage.take();
      put_event();
      return stage.words().find(" takes events again; ") != std::string::npos;
    });
    wait_until([&] {
      stage.take();
      return stage.events.ends_with(
          fmt::format("{{\"event\":{},\"rest\":\"{}\"}}\n", put - 1, rest));
    });
    terminal->finish(0, true);
  }
  std::size_t last = 0;
  for (std::size_t at = 0; at < stage.events.size(); ++kept) {
    const std::size_t number = std::stoul(stage.events.substr(at + 9));
    CHECK((kept == 0 || number > last));
    last = number;
    at = stage.events.find('\n', at) + 1;
  }
  CHECK(stage.words().ends_with(
      fmt::format("elasticrun: {} takes events again; {} were lost\n", name, put - kept)));
  CHECK(put > kept);
}

TEST_CASE("text of others stays one line of ours, without control characters") {
  Stage stage;
  const auto terminal = Terminal::open(stage.spec).value();
  terminal->log(job::report::LogLevel::error,
                "worker 1 left: \r\nelasticrun: forged\x1b[1A \x9b"
                "2J \xc2\x9b"
                "2J gr\xc3\xbcn\n");
  terminal->log(job::report::LogLevel::error,
                "worker 2 left: " + std::string(1 << 20, 'x') + "; the job ends with 3");
  terminal->finish(0, true);
  const std::string words = stage.words();
  const std::string first =
      "elasticrun: worker 1 left:   elasticrun: forged?[1A ?2J ?2J gr\xc3\xbcn\n";
  CHECK(words.starts_with(first + "elasticrun: worker 2 left: xxx"));
  CHECK(words.ends_with("xxx; the job ends with 3\n"));
  CHECK(words.size() < 5000);
  CHECK(std::ranges::count(words, '\n') == 2);
}

TEST_CASE("a symbolic link in the log folder is not followed") {
  Stage stage;
  fs::create_directory(stage.spec.log_dir);
  fs::create_symlink(stage.folder + "/victim", stage.spec.log_dir + "/host.0.worker1.err");
  const auto terminal = Terminal::open(stage.spec).value();
  const job::report::WorkerLabel label{WorkerId(1), HostId(1), "host", 0};
  terminal->output(label, 2, "hello\n");
  terminal->finish(0, true);
  CHECK_FALSE(fs::exists(stage.folder + "/victim"));
  const std::string words = stage.words();
  CHECK(words.find("host:-: hello\n") != words.npos);
  CHECK(
      words.find(fmt::format("elasticrun: {}/host.0.worker1.err: a symbolic link is not followed; "
                             "the job continues without it\n",
                             stage.spec.log_dir)) != words.npos);
}
