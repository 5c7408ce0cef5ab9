// A call that hangs (here it opens a pipe without a reader) blocks neither the io_context nor the
// caller.
#include "launcher/executors/file_thread.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "net/sockets.hpp"

using namespace elasticrun;
using namespace elasticrun::launcher::executors;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

// Opening this path blocks until let_go().
struct Hanging {
  Hanging() {
    folder = std::filesystem::temp_directory_path() / "hanging-XXXXXX";
    REQUIRE(::mkdtemp(folder.data()));
    path = folder + "/pipe";
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  }
  ~Hanging() {
    let_go();
    std::filesystem::remove_all(folder);
  }
  void let_go() { other_end = net::Fd(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC)); }
  static void touch(const std::string& path) {
    net::Fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  }

  std::string folder, path;
  net::Fd other_end;
};

}  // namespace

TEST_CASE("calls run one after the other on another thread, and their answers on this one") {
  asio::io_context io;
  FileThread files(io);
  const auto here = std::this_thread::get_id();
  std::vector<int> answers;
  for (const int number : {1, 2, 3})
    files.run([&, number] {
      CHECK(std::this_thread::get_id() != here);
      return [&, number] {
        CHECK(std::this_thread::get_id() == here);
        answers.push_back(number);
        if (number == 3) files.run([&] { return [&] { answers.push_back(4); }; });
      };
    });
  io.run();  // returns after the last answer
  CHECK(answers == std::vector{1, 2, 3, 4});
  files.run([&] { return [&] { answers.push_back(5); }; });
  io.restart();
  io.run();
  CHECK(answers.back() == 5);
}

TEST_CASE("a call that hangs delays those behind it, and nothing else") {
  Hanging hanging;
  asio::io_context io;
  FileThread files(io);
  int answers = 0, ticks = 0;
  for (int i = 0; i < 2; ++i)
    files.run([&answers, path = i == 0 ? hanging.path : hanging.folder] {
      Hanging::touch(path);
      return [&answers] { ++answers; };
    });
  asio::steady_timer timer(io);
  std::function<void()> tick = [&] {
    timer.expires_after(1ms);
    timer.async_wait([&](const boost::system::error_code&) {
      if (++ticks == 20) hanging.let_go();
      if (ticks < 20) CHECK(answers == 0);
      if (answers < 2) tick();
    });
  };
  tick();
  io.run();
  CHECK(answers == 2);
  CHECK(ticks >= 20);
}

TEST_CASE("the file thread can be destroyed while a call hangs, and no answer follows") {
  Hanging hanging;
  asio::io_context io;
  std::optional<FileThread> files(io);
  // in the end only the call still holds it
  const auto kept = std::make_shared<std::atomic<bool>>(false);
  for (const std::string& path : {hanging.folder, hanging.path})
    files->run([&, kept, path] {
      Hanging::touch(path);
      kept->store(true);
      return [&] {
        CHECK(files);
        files.reset();  // inside its own answer
      };
    });
  io.run();
  CHECK_FALSE(files);
  hanging.let_go();
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (kept.use_count() > 1) REQUIRE(std::chrono::steady_clock::now() < deadline);
  io.restart();
  io.run();
}

TEST_CASE("a call with a time limit comes after those before it") {
  asio::io_context io;
  FileThread files(io);
  const auto order = std::make_shared<std::vector<int>>();
  files.run([order]() -> FileThread::Answer {
    order->push_back(1);
    return [] {};
  });
  CHECK(files.ends_within(20s, [order] { order->push_back(2); }));
  CHECK(*order == std::vector<int>{1, 2});
  Hanging hanging;
  CHECK_FALSE(files.ends_within(10ms, [path = hanging.path] { Hanging::touch(path); }));
  CHECK_FALSE(files.ends_within(10ms, [] {}));  // it waits for the one before
}

TEST_CASE("a call may have a time limit") {
  Hanging hanging;
  CHECK(ends_within(20s, [path = hanging.folder] { Hanging::touch(path); }));
  CHECK_FALSE(ends_within(10ms, [path = hanging.path] { Hanging::touch(path); }));
}
