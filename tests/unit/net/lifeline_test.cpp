// Processes that hold a lifeline and die, end, let go, or find none.
#include "net/lifeline.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>

namespace elasticrun::net {
namespace {

struct Watched {
  Watched()
      : path(std::filesystem::temp_directory_path() / fmt::format("lifeline-{}", ::getpid())),
        watch(std::make_unique<LifelineWatch>(path, [this] { broken.set_value(); })) {}

  bool breaks() {
    return broken.get_future().wait_for(std::chrono::seconds(20)) == std::future_status::ready;
  }
  // The word itself: the watch may not have looked yet.
  std::uint32_t word() const { return SharedWord::open(path, 0)->read().value(); }

  std::promise<void> broken;
  std::filesystem::path path;
  std::unique_ptr<LifelineWatch> watch;
};

// A process that does this, then says so, and waits for its end.
class Child {
 public:
  explicit Child(const std::function<void()>& what) {
    int ready[2] = {-1, -1};
    REQUIRE(::pipe2(ready, O_CLOEXEC) == 0);
    const Fd mine(ready[0]), its(ready[1]);
    pid_ = ::fork();
    if (pid_ == 0) {
      what();
      (void)!::write(its.get(), "x", 1);
      for (;;) ::pause();
    }
    char said = 0;
    REQUIRE(::read(mine.get(), &said, 1) == 1);
  }
  ~Child() { kill(); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  }

 private:
  pid_t pid_ = -1;
};

// Holds it until the process ends.
void hold(const std::string& path) { (void)new HeldLifeline(path); }

TEST_CASE("a process that is killed breaks its lifeline") {
  Watched watched;
  Child child([&] { hold(watched.path); });
  child.kill();
  CHECK(watched.breaks());
}

TEST_CASE("a lifeline that was let go can be held again") {
  Watched watched;
  Child child([&] {
    { const HeldLifeline first(watched.path); }
    hold(watched.path);
  });
  child.kill();
  CHECK(watched.breaks());
}

TEST_CASE("who has let go may die") {
  Watched watched;
  Child child([&] { const HeldLifeline held(watched.path); });
  child.kill();
  CHECK(watched.word() == 0);
}

TEST_CASE("a watch may end while the lifeline is held, and the other way round") {
  Watched watched;
  Child child([&] { hold(watched.path); });
  watched.watch.reset();
  CHECK(!std::filesystem::exists(watched.path));
  child.kill();
}

TEST_CASE("the child of a process does not hold its lifeline") {
  Watched watched;
  Child child([&] {
    hold(watched.path);
    const pid_t grandchild = ::fork();
    if (grandchild == 0) ::_exit(0);
    ::waitpid(grandchild, nullptr, 0);
  });
  CHECK((watched.word() & FUTEX_TID_MASK) != 0);
  CHECK((watched.word() & FUTEX_OWNER_DIED) == 0);
}

TEST_CASE("a lifeline breaks again for another process, and also when its file was removed") {
  Watched watched;
  Child first([&] { hold(watched.path); });
  first.kill();
  REQUIRE(watched.breaks());
  watched.broken = {};
  Child second([&] { hold(watched.path); });
  std::filesystem::remove(watched.path);
  second.kill();
  CHECK(watched.breaks());
}

TEST_CASE("a missing lifeline, and one that was cut short, harm nobody") {
  Watched watched;
  const HeldLifeline none(watched.path.string() + "-of-another");
  Child child([&] { hold(watched.path); });
  std::filesystem::resize_file(watched.path, 0);
  child.kill();
  watched.watch.reset();
  CHECK(watched.broken.get_future().wait_for(std::chrono::seconds(0)) != std::future_status::ready);
}

TEST_CASE("a second lifeline of the same path cannot be made") {
  Watched watched;
  const LifelineWatch second(watched.path, [] { FAIL_CHECK("it has broken"); });
  Child child([&] { hold(watched.path); });
  child.kill();
  CHECK(watched.breaks());
}

TEST_CASE("a lifeline remembers that a process of its worker has trained") {
  const Watched watched;
  CHECK_FALSE(has_trained(watched.path));
  note_training(watched.path);
  CHECK(has_trained(watched.path));
  Child([&] {
    const HeldLifeline held(watched.path);  // the next process
    watched.word();
  });
  CHECK(has_trained(watched.path));
  CHECK_FALSE(has_trained("/nonexistent/lifeline-1"));
  note_training("/nonexistent/lifeline-1");
}

}  // namespace
}  // namespace elasticrun::net
