// The writer with real pipes, files and signals: readers that stop, interrupted writes, open files.
#include "cli/run/writer.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

using namespace elasticrun;
using namespace elasticrun::cli;
using namespace elasticrun::cli::run;
using namespace std::chrono_literals;

namespace {

namespace fs = std::filesystem;

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    reader = net::Fd(ends[0]);
    writer = net::Fd(ends[1]);
  }
  // Reads up to the end.
  std::string read() const {
    std::string text;
    std::array<char, 65536> buffer;
    for (ssize_t n; (n = ::read(reader.get(), buffer.data(), buffer.size())) != 0;)
      if (n > 0) text.append(buffer.data(), static_cast<std::size_t>(n));
    return text;
  }
  net::Fd reader, writer;
};

std::string numbered_lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{}\n", i);
  return text;
}

// A temporary folder for the files.
struct Folder {
  Folder() {
    path = fs::temp_directory_path() / "writer-XXXXXX";
    REQUIRE(::mkdtemp(path.data()));
  }
  ~Folder() { fs::remove_all(path); }
  net::Fd open(const std::string& name) {
    ++opened;
    return net::Fd(
        ::open((path + "/" + name).c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  }
  std::string text(const std::string& name) const {
    std::ifstream file(path + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  Writer::Handlers handlers() {
    return {[this](const std::string& name) { return open(name); },
            [this](const std::string& name, int error) {
              trouble += fmt::format("{}: {};", name, net::error_text(error));
            }};
  }
  // The number of this process's descriptors that point into the folder.
  std::size_t open_files() const {
    std::size_t count = 0;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd"))
      count += fs::read_symlink(entry, ignored).string().starts_with(path);
    return count;
  }
  std::string path, trouble;
  int opened = 0;
};

void wait_until(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (!condition()) {
    REQUIRE(std::chrono::steady_clock::now() < deadline);
    std::this_thread::yield();
  }
}

std::atomic<int> interruptions{0};

}  // namespace

TEST_CASE("a write that is interrupted repeatedly loses nothing") {
  struct sigaction before {
  }, counted{};
  counted.sa_handler = [](int) { ++interruptions; };  // without SA_RESTART
  ::sigaction(SIGUSR1, &counted, &before);
  interruptions = 0;
  const std::string text = numbered_lines(100'000);
  for (const bool blocks : {true, false}) {
    CAPTURE(blocks);
    Pipe pipe;
    if (!blocks) ::fcntl(pipe.writer.get(), F_SETFL, O_NONBLOCK);
    std::size_t written = 0;
    int error = -1;
    std::thread thread([&] {
      error = write_all(pipe.writer.get(), text,
                        [&](std::string_view part) { written += part.size(); });
      pipe.writer = net::Fd();
    });
    // all during this write, as the pipe is full before it ends
    const int enough = interruptions + 100;
    wait_until([&] {
      ::pthread_kill(thread.native_handle(), SIGUSR1);
      return interruptions >= enough;
    });
    CHECK(pipe.read() == text);
    thread.join();
    CHECK(error == 0);
    CHECK(written == text.size());
  }
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_CASE("a reader that sleeps delays nothing, and only refused lines are missing") {
  Pipe pipe;
  {
    Writer writer("test", 1u << 20,
                  {[&](const std::string&) { return std::move(pipe.writer); },
                   [](const std::string&, int) { FAIL("no trouble"); }});
    std::size_t begun = 0, taken = 0, lost = 0;
    const auto put = [&] {
      const auto gap = writer.put("", fmt::format("{:09}\n", taken + lost));
      begun += gap.begins;
      if (begun > 0 && gap.ended_after == 0)
        ++lost;
      else
        ++taken;
      return gap.ended_after;
    };
    while (lost < 1000) put();
    CHECK(begun == 1);
    CHECK(taken >= (1u << 20) / 10);
    CHECK(taken < (2u << 20) / 10);  // the limit plus the content of the pipe
    CHECK(writer.refused_lines() == lost);
    // Nothing reads the pipe, so finish() gives up at either deadline.
    CHECK_FALSE(writer.finish({.in_all = 10ms}));
    CHECK_FALSE(writer.finish({.standstill = 10ms}));
    const std::size_t unwritten = writer.unwritten_lines();
    CHECK(unwritten > lost);
    CHECK(unwritten < lost + taken);
    std::string text;
    std::thread reader([&] { text = pipe.read(); });
    CHECK(writer.finish({}));
    CHECK(writer.unwritten_lines() == lost);
    reader.join();
    CHECK(text.size() == 10 * taken);
    CHECK(text.ends_with(fmt::format("{:09}\n", taken - 1)));
  }
}

TEST_CASE("with half of its room free, the writer accepts lines again and counts the lost ones") {
  Pipe pipe;
  std::size_t lost = 0, ended_after = 0;
  std::string text;
  {
    Writer writer("test", 1u << 20,
                  {[&](const std::string&) { return std::move(pipe.writer); }, {}});
    const std::string line(99, 'x');
    while (!writer.put("", line + "\n").begins) {
    }
    for (lost = 1; lost < 500; ++lost) writer.put("", line + "\n");
    std::thread reader([&] { text = pipe.read(); });
    wait_until([&] {
      ended_after = writer.put("", "again\n").ended_after;
      return ended_after > 0 || (++lost, false);
    });
    CHECK(ended_after == lost);
    CHECK(writer.finish({}));
    reader.join();
  }
  CHECK(text.ends_with("x\nagain\n"));
  CHECK(text.find("again") == text.rfind("again"));
}

TEST_CASE("a file is opened by its first line, and closed when no more is expected") {
  Folder folder;
  Writer writer("test", 1u << 20, folder.handlers());
  writer.put("a", "1\n");
  writer.put("b", "2\n");
  wait_until([&] { return folder.open_files() == 2; });
  writer.close("a");
  wait_until([&] { return folder.open_files() == 1; });
  writer.put("a", "late\n", true);
  writer.put("b", "3\n");
  wait_until([&] { return folder.text("b") == "2\n3\n"; });
  CHECK(folder.open_files() == 1);
  CHECK(folder.text("a") == "1\nlate\n");
  CHECK(folder.opened == 3);
  CHECK(writer.finish({}));
  CHECK(folder.open_files() == 0);
}

TEST_CASE("the number of open files is limited") {
  Folder folder;
  Writer writer("test", 1u << 20, folder.handlers());
  for (std::size_t i = 0; i < open_files_max + 10; ++i) {
    writer.put(fmt::to_string(i), "first\n");
    writer.put("0", "once more\n");  // this file stays open
  }
  wait_until([&] { return folder.text(fmt::to_string(open_files_max + 9)) == "first\n"; });
  CHECK(folder.open_files() <= open_files_max);
  writer.put("1", "second\n");
  CHECK(writer.finish({}));
  CHECK(folder.text("1") == "first\nsecond\n");
  CHECK(folder.opened == static_cast<int>(open_files_max) + 11);
}

TEST_CASE("an error of a file is reported once, and the other files are written") {
  Folder folder;
  fs::create_symlink("/dev/full", folder.path + "/full");
  fs::create_directory(folder.path + "/folder");
  {
    Writer writer("test", 1u << 20, folder.handlers());
    for (int i = 0; i < 3; ++i)
      for (const char* name : {"full", "folder", "file"}) writer.put(name, "x\n");
    CHECK(writer.finish({}));
    CHECK(writer.unwritten_lines() == 0);  // these are not losses of the queue
  }
  CHECK(folder.trouble == "full: No space left on device;");
  CHECK(folder.text("file") == "x\nx\nx\n");
}
