// Functions of the program that end in ways of their own: with an exception that no C program
// knows, or in a child that they have forked.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "alone.hpp"

namespace elasticrun::alone_test {
namespace {

TEST_CASE("an exception that is no status takes the worker out of the world") {
  struct Case {
    std::string error;
    std::function<void()> thrown;
  };
  const std::vector<Case> cases{
      {"out of memory", [] { throw std::bad_alloc(); }},
      {"no thread",
       [] {
         throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again),
                                 "no thread");
       }},
      {"an unknown error", [] { throw 7; }}};
  for (const Case& one : cases) {
    CAPTURE(one.error);
    Alone alone;
    const auto passes = alone.compute;
    alone.compute = [&](elasticrun_step*) -> int { return one.thrown(), 0; };
    CHECK(alone.train() == ELASTICRUN_FAILED);
    CHECK(contains(alone.error(), one.error));
    alone.compute = passes;
    CHECK(alone.train() == ELASTICRUN_EVICTED);
  }
}

TEST_CASE("a child that a function of the program forks ends when it leaves the function") {
  struct Case {
    int code = 0;
    std::function<int()> leave;
  };
  // 77 shows that the child has gone on: its call of train has returned.
  const std::vector<Case> cases{
      {0, [] { return 0; }}, {1, [] { return 5; }}, {1, []() -> int { throw std::bad_alloc(); }}};
  for (const Case& one : cases) {
    CAPTURE(one.code);
    Alone alone;
    const pid_t owner = ::getpid();
    int children = 0;
    const auto forks = [&] {
      const pid_t child = ::fork();
      if (child == 0) return one.leave();
      int status = 0;
      REQUIRE(::waitpid(child, &status, 0) == child);
      CHECK(WIFEXITED(status));
      CHECK(WEXITSTATUS(status) == one.code);
      ++children;
      return 0;
    };
    alone.compute = [&](elasticrun_step*) { return forks(); };
    alone.apply = [&](elasticrun_step*) { return forks(); };
    auto function = std::function<int()>(forks);
    REQUIRE(
        elasticrun_on_epoch(
            alone.job,
            [](std::int64_t, void* user) { return (*static_cast<std::function<int()>*>(user))(); },
            &function) == ELASTICRUN_OK);
    const elasticrun_status status = alone.train();
    if (::getpid() != owner) ::_exit(77);
    CHECK(status == ELASTICRUN_OK);
    CHECK(children == 3 + 3 + 1);
  }
}

TEST_CASE("a child that a state source forks ends when it leaves the function") {
  Alone alone;
  const pid_t owner = ::getpid();
  int code = -1;
  const elasticrun_source source{
      sizeof source,
      [](elasticrun_listing*, void* user) {
        const pid_t child = ::fork();
        if (child == 0) return 3;
        int status = 0;
        if (::waitpid(child, &status, 0) != child) return 1;
        *static_cast<int*>(user) = WIFEXITED(status) ? WEXITSTATUS(status) : -2;
        return 0;
      },
      [](const elasticrun_array*, std::size_t, void*) { return 0; }, nullptr, &code};
  REQUIRE(elasticrun_state_source(alone.job, &source) == ELASTICRUN_OK);
  const elasticrun_status status = elasticrun_start(alone.job);  // copies the state
  if (::getpid() != owner) ::_exit(77);
  CHECK(status == ELASTICRUN_OK);
  CHECK(code == 1);
}

TEST_CASE("a worker that has trained opens no second job") {
  const auto folder =
      std::filesystem::temp_directory_path() / ("trained-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  ::setenv("ELASTICRUN_SOCKET", (folder / "agent.sock").c_str(), 1);
  ::setenv("ELASTICRUN_WORKER", "3", 1);
  // Without an agent a job cannot be opened, either, but for another reason.
  for (const bool trained : {false, true}) {
    std::ofstream(folder / "lifeline-3") << std::string(4, '\0') << (trained ? "t" : "");
    elasticrun_job* job = nullptr;
    CHECK(elasticrun_open(&job) == (trained ? ELASTICRUN_MISUSE : ELASTICRUN_FAILED));
    REQUIRE(job != nullptr);
    CHECK(contains(elasticrun_error(job), "one job per worker") == trained);
    elasticrun_close(job);
  }
  ::unsetenv("ELASTICRUN_SOCKET");
  ::unsetenv("ELASTICRUN_WORKER");
  std::filesystem::remove_all(folder);
}

TEST_CASE("a child that exits inside a function of the program closes its copy of the job") {
  Alone alone;
  int status = -1;
  alone.compute = [&](elasticrun_step*) {
    const pid_t child = ::fork();
    if (child == 0) {  // as the destructor of a static job does
      elasticrun_close(alone.job);
      ::_exit(4);
    }
    return ::waitpid(child, &status, 0) == child ? 0 : 1;
  };
  REQUIRE(alone.train() == ELASTICRUN_OK);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 4);
}

}  // namespace
}  // namespace elasticrun::alone_test
