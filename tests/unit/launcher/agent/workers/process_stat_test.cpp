// Which process is below which, in tables and among real processes.
#include "launcher/agent/workers/process_stat.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <linux/sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <map>

#include "launcher/agent/workers/peers.hpp"

namespace elasticrun::launcher::agent::workers {
namespace {

TEST_CASE("the stat file of a process is parsed, whatever the process is called") {
  const std::string rest = " 11 12 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 200";
  for (const std::string name : {"train", "a b", ") R 1 1", "()", ""}) {
    const auto stat = parse_process_stat("42 (" + name + ") S 7" + rest);
    REQUIRE_MESSAGE(stat, name);
    CHECK(stat->parent == 7);
    CHECK(stat->started == 987654);
  }
  for (const char* text : {"", "42 (train", "42 (train) S", "42 (train) S x", "42 (train) S 7 8 9"})
    CHECK_MESSAGE(!parse_process_stat(text), text);
  CHECK(process_stat(::getpid())->parent == ::getppid());
  CHECK(!process_stat(-1));
}

TEST_CASE("the stat file tells how a process ends that dies") {
  const auto end_of = [](int status) {
    std::string text = "42 (train) S 7";
    for (int field = 5; field < 52; ++field) text += " 9";
    const auto stat = parse_process_stat(fmt::format("{} {}\n", text, status));
    REQUIRE(stat);
    return end_in(*stat);
  };
  constexpr int dumped_core = 0x80;
  CHECK(!end_of(0));
  CHECK(end_of(3 << 8)->code == 3);
  CHECK(end_of(3 << 8)->signal == 0);
  CHECK(end_of(SIGKILL)->signal == SIGKILL);
  CHECK(end_of(SIGSEGV | dumped_core)->signal == SIGSEGV);
  CHECK(!end_of(SIGSTOP));  // it is stopped
  CHECK(!end_in(*process_stat(::getpid())));
}

TEST_CASE("is_below walks along the parents") {
  using Table = std::map<pid_t, ProcessStat>;
  struct Case {
    const char* name;
    pid_t pid;
    pid_t above;
    Table table;
    bool below;
  };
  const Case cases[] = {
      {"child", 20, 10, {{20, {10, 5}}, {10, {1, 4}}}, true},
      {"in the same tick", 20, 10, {{20, {10, 5}}, {10, {1, 5}}}, true},
      {"grandchild", 30, 10, {{30, {20, 6}}, {20, {10, 5}}, {10, {1, 4}}}, true},
      {"itself", 10, 10, {{10, {2, 4}}, {2, {1, 1}}}, false},
      {"the other way round", 10, 20, {{20, {10, 5}}, {10, {2, 4}}, {2, {1, 1}}}, false},
      {"of another one", 30, 10, {{30, {20, 6}}, {20, {1, 5}}, {10, {1, 4}}}, false},
      {"gone", 30, 10, {{10, {1, 4}}}, false},
      {"its parent is gone", 30, 10, {{30, {20, 6}}, {10, {1, 4}}}, false},
      {"its parent's number is another's",
       30,
       10,
       {{30, {20, 6}}, {20, {10, 7}}, {10, {1, 4}}},
       false},
      {"the number of the one above is another's", 20, 10, {{20, {10, 5}}, {10, {1, 6}}}, false},
      {"of another world", 20, 10, {{20, {0, 5}}, {10, {1, 4}}}, false},
      {"below the first one", 20, 1, {{20, {10, 5}}, {10, {1, 4}}, {1, {0, 0}}}, true},
      {"a circle that cannot be", 20, 10, {{20, {30, 5}}, {30, {20, 5}}, {10, {1, 4}}}, false},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    CHECK(is_below(c.pid, c.above, [&](pid_t pid) {
            const auto found = c.table.find(pid);
            return found == c.table.end() ? std::nullopt : std::optional(found->second);
          }) == c.below);
  }
}

TEST_CASE("a parent may die during the walk") {
  int asked = 0;
  const auto stat_of = [&](pid_t pid) -> std::optional<ProcessStat> {
    if (pid == 10) return ProcessStat{1, 4};
    if (pid == 30) return ProcessStat{asked++ == 0 ? 20 : 10, 6};  // its subreaper adopts it
    return std::nullopt;
  };
  CHECK(is_below(30, 10, stat_of));
}

// A process that connects to `address` and stays until it is killed; `number` is its id, if
// possible.
struct Guest {
  explicit Guest(const sockaddr_un& address, pid_t number = 0) {
    clone_args how{};
    how.exit_signal = SIGCHLD;
    if (number != 0) {
      how.set_tid = reinterpret_cast<std::uintptr_t>(&number);
      how.set_tid_size = 1;
    }
    pid = static_cast<pid_t>(::syscall(SYS_clone3, &how, sizeof how));
    if (pid != 0) return;
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    (void)::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    for (;;) ::pause();
  }
  void end() {
    if (pid <= 0) return;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    pid = -1;
  }
  ~Guest() { end(); }
  pid_t pid = -1;
};

TEST_CASE("a peer is the process that has connected, not a later one with the same process id") {
  const auto path =
      std::filesystem::temp_directory_path() / ("peers-" + std::to_string(::getpid()));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  path.string().copy(address.sun_path, sizeof address.sun_path - 1);
  const net::Fd listening(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::bind(listening.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(listening.get(), 5) == 0);
  Peers peers;
  Guest guest(address);
  REQUIRE(guest.pid > 0);
  const net::Fd first(::accept(listening.get(), nullptr, nullptr));
  peers.came(first.get());
  CHECK(peers.is_below(guest.pid, ::getpid()));
  CHECK(peers.is_below(guest.pid, ::getppid()));
  CHECK(!peers.is_below(guest.pid, guest.pid));

  const pid_t number = guest.pid;
  guest.end();
  CHECK(!peers.is_below(number, ::getpid()));
  Guest heir(address, number);
  if (heir.pid == number) {
    CHECK(!peers.is_below(number, ::getpid()));
    const net::Fd second(::accept(listening.get(), nullptr, nullptr));
    peers.came(second.get());
    CHECK(peers.is_below(number, ::getpid()));
    heir.end();
    // The process connects and ends before `peers` learns of it.
    Guest brief(address, number);
    const net::Fd third(::accept(listening.get(), nullptr, nullptr));
    brief.end();
    Guest last(address, number);
    peers.came(third.get());
    CHECK(!peers.is_below(number, ::getpid()));
  } else {
    MESSAGE("not checked: no right to choose the number of a process");
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace elasticrun::launcher::agent::workers
