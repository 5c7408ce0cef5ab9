// Which signals end a worker, by who sends them.
#include "worker/api/stray_signals.hpp"

#include <doctest/doctest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <initializer_list>

using elasticrun::worker::api::ignore_stray_signals;

namespace {

// A shim and a worker below it. Each byte to the worker comes back, so it has not ended of a signal
// that was sent before; one to the shim is a signal for the worker.
struct Below {
  explicit Below(const char* name, bool handles = false) {
    REQUIRE(::pipe(to_shim) == 0);
    REQUIRE(::pipe(to_worker) == 0);
    REQUIRE(::pipe(from_worker) == 0);
    shim = ::fork();
    if (shim == 0) be_shim(name, handles);
    REQUIRE(::read(from_worker[0], &worker, sizeof worker) == sizeof worker);
  }
  ~Below() {
    ::kill(worker, SIGKILL);
    ::kill(shim, SIGKILL);
    ::waitpid(shim, nullptr, 0);
    for (int* pipe : {to_shim, to_worker, from_worker})
      for (int i : {0, 1}) ::close(pipe[i]);
  }
  Below(const Below&) = delete;

  [[noreturn]] void be_shim(const char* name, bool handles) const {
    ::prctl(PR_SET_NAME, name);
    const pid_t child = ::fork();
    if (child == 0) be_worker(handles);
    ::close(from_worker[1]);  // its end is the worker's
    unsigned char order = 0;
    while (::read(to_shim[0], &order, 1) == 1) ::kill(-child, order);
    ::_exit(0);
  }
  [[noreturn]] void be_worker(bool handles) const {
    ::setpgid(0, 0);
    for (const int number : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2}) ::signal(number, SIG_DFL);
    if (handles) ::signal(SIGTERM, [](int) { ::_exit(7); });
    ignore_stray_signals();
    const pid_t self = ::getpid();
    (void)!::write(from_worker[1], &self, sizeof self);
    ::close(from_worker[0]);
    char byte = 0;
    while (::read(to_worker[0], &byte, 1) == 1) (void)!::write(from_worker[1], &byte, 1);
    ::_exit(0);
  }

  bool lives_after(int signal) {
    ::kill(worker, signal);
    ::close(from_worker[1]);  // now only the worker holds it
    from_worker[1] = -1;
    char byte = 'a';
    (void)!::write(to_worker[1], &byte, 1);
    return ::read(from_worker[0], &byte, 1) == 1;
  }
  bool lives_after_order(int signal) {
    const auto order = static_cast<unsigned char>(signal);
    (void)!::write(to_shim[1], &order, 1);
    ::close(from_worker[1]);
    from_worker[1] = -1;
    char byte = 0;
    return ::read(from_worker[0], &byte, 1) == 1;  // ends when the worker does
  }

  int to_shim[2], to_worker[2], from_worker[2];
  pid_t shim = -1, worker = -1;
};

}  // namespace

TEST_CASE("a signal to all processes does not end a worker, and its shim's does") {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2}) {
    Below one("er-shim");
    CHECK(one.lives_after(signal));
  }
  for (const int signal : {SIGTERM, SIGINT}) {
    Below one("er-shim");
    CHECK_FALSE(one.lives_after_order(signal));
  }
}

TEST_CASE("without a shim all signals end a program as before") {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2}) {
    Below one("other");
    CHECK_FALSE(one.lives_after(signal));
  }
}

TEST_CASE("a handler of the program stays") {
  Below one("er-shim", true);
  CHECK_FALSE(one.lives_after(SIGTERM));
}
