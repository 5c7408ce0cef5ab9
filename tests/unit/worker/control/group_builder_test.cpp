// The background thread that forms groups: no call that blocks there may delay an abort.
#include "worker/control/group_builder.hpp"

#include <doctest/doctest.h>

#include <condition_variable>
#include <csignal>
#include <mutex>
#include <set>

namespace elasticrun::worker::control {
namespace {

// Records what happens to groups; tests can wait for an entry.
class Diary {
 public:
  void note(const std::string& what) {
    const std::lock_guard lock(mutex_);
    entries_.insert(what);
    changed_.notify_all();
  }
  bool has(const std::string& what) {
    const std::lock_guard lock(mutex_);
    return entries_.contains(what);
  }
  void until(const std::string& what) {
    INFO("waiting for ", what);
    std::unique_lock lock(mutex_);
    REQUIRE(
        changed_.wait_for(lock, std::chrono::seconds(60), [&] { return entries_.contains(what); }));
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::multiset<std::string> entries_;
};

// A group that is named by its rank. Connecting to "nobody" blocks until the group is aborted.
class FakeGroup final : public collective::Group {
 public:
  FakeGroup(Diary& diary, int rank) : diary_(diary), rank_(rank) {}
  ~FakeGroup() override { diary_.note("gone " + std::to_string(rank_)); }
  int rank() const override { return rank_; }
  int size() const override { return 1; }
  std::string publish() override { return "address"; }
  void connect(const std::vector<std::string>& published) override {
    if (published.front() == "nobody") {
      diary_.note("connecting " + std::to_string(rank_));
      diary_.until("aborted " + std::to_string(rank_));
      throw collective::GroupBroken("aborted");
    }
  }
  std::string formation() const override { return "by hand"; }
  void abort() noexcept override { diary_.note("aborted " + std::to_string(rank_)); }
  void close() noexcept override { diary_.note("closed " + std::to_string(rank_)); }
  void all_reduce(void*, collective::DataType, std::size_t) override {}
  void broadcast(void*, std::size_t, int) override {}
  void barrier() override {}
  std::unique_ptr<collective::Pending> post_send(int, const void*, std::size_t,
                                                 std::uint32_t) override {
    return nullptr;
  }
  std::unique_ptr<collective::Pending> post_recv(int, void*, std::size_t, std::uint32_t) override {
    return nullptr;
  }

 private:
  Diary& diary_;
  const int rank_;
};

struct FakePlane final : collective::DataPlane {
  explicit FakePlane(Diary& d) : diary(d) {}
  std::unique_ptr<collective::Group> create(const collective::GroupSpec& spec) override {
    if (spec.size == 0) throw collective::GroupBroken("no such group");
    sigset_t mask;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    if (sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGTERM) == 1)
      diary.note("signals are blocked");
    return std::make_unique<FakeGroup>(diary, spec.rank);
  }
  Diary& diary;
};

struct Scene {
  Diary diary;
  GroupBuilder builder{
      std::make_unique<FakePlane>(diary),
      {.published =
           [this](Generation generation, const std::string& address, const std::vector<int>&) {
             diary.note("published " + std::to_string(generation.value) + " " + address);
           },
       .formed =
           [this](Generation generation, const std::string& formation, int) {
             diary.note("formed " + std::to_string(generation.value) + " " + formation);
           },
       .failed =
           [this](Generation generation, const collective::GroupBroken& error) {
             diary.note("failed " + std::to_string(generation.value) + ": " + error.what());
           }}};

  // The generation's number is used as the rank, too.
  void form(std::uint64_t number, const std::string& peer = "somebody") {
    builder.form({.rank = static_cast<int>(number), .generation = Generation(number)});
    diary.until("published " + std::to_string(number) + " address");
    builder.connect(Generation(number), {peer});
  }
};

TEST_CASE("a group is formed, acquired, and closed when it is neither wanted nor in use") {
  Scene scene;
  scene.form(1);
  scene.diary.until("formed 1 by hand");
  collective::Group* const group = scene.builder.acquire(Generation(1));
  REQUIRE(group != nullptr);
  CHECK(group->rank() == 1);
  scene.form(2);
  scene.diary.until("formed 2 by hand");
  scene.builder.close(Generation(2));
  scene.form(3);  // goes through the same queue, after the close
  scene.diary.until("formed 3 by hand");
  CHECK_FALSE(scene.diary.has("closed 1"));
  scene.builder.release(Generation(1));
  scene.diary.until("gone 1");
  CHECK(scene.diary.has("closed 1"));
  CHECK_FALSE(scene.diary.has("aborted 1"));
  CHECK(scene.builder.acquire(Generation(1)) == nullptr);
  CHECK(scene.builder.acquire(Generation(2)) != nullptr);
  CHECK(scene.diary.has("signals are blocked"));
}

TEST_CASE("an abort wakes a connect that blocks the thread") {
  Scene scene;
  scene.form(1);
  scene.form(2, "nobody");
  scene.diary.until("connecting 2");
  SUBCASE("abort") { scene.builder.abort(Generation(2)); }
  SUBCASE("drop") { scene.builder.drop(Generation(2)); }
  scene.diary.until("failed 2: aborted");
  scene.diary.until("gone 2");
  CHECK(scene.builder.acquire(Generation(2)) == nullptr);
}

TEST_CASE("a group that is dropped before its turn is never made") {
  Scene scene;
  scene.form(1, "nobody");
  scene.diary.until("connecting 1");
  scene.builder.form({.rank = 2, .generation = Generation(2)});
  scene.builder.drop(Generation(2));
  scene.builder.abort(Generation(1));
  scene.form(3);
  scene.diary.until("formed 3 by hand");
  CHECK_FALSE(scene.diary.has("published 2 address"));
}

TEST_CASE("an abort reaches a group that is in use") {
  Scene scene;
  scene.form(1);
  scene.diary.until("formed 1 by hand");
  REQUIRE(scene.builder.acquire(Generation(1)) != nullptr);
  scene.builder.abort(Generation(7));
  CHECK(scene.diary.has("aborted 1"));
  scene.form(8);
  scene.diary.until("formed 8 by hand");
  CHECK_FALSE(scene.diary.has("gone 1"));
  scene.builder.release(Generation(1));
  scene.diary.until("gone 1");
}

TEST_CASE("a group that cannot be created fails with the reason") {
  Scene scene;
  scene.builder.form({.size = 0, .generation = Generation(1)});
  scene.diary.until("failed 1: no such group");
  CHECK(scene.builder.acquire(Generation(1)) == nullptr);
}

TEST_CASE("the destructor wakes a connect that blocks") {
  Diary diary;
  {
    GroupBuilder builder(
        std::make_unique<FakePlane>(diary),
        {.published = [](Generation, const std::string&, const std::vector<int>&) {},
         .formed = [](Generation, const std::string&, int) {},
         .failed = [](Generation, const collective::GroupBroken&) {}});
    builder.form({.rank = 1, .generation = Generation(1)});
    builder.connect(Generation(1), {"nobody"});
    diary.until("connecting 1");
  }
  CHECK(diary.has("gone 1"));
}

}  // namespace
}  // namespace elasticrun::worker::control
