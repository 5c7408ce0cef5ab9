// See signals.hpp.
#include "job/driver/signals.hpp"

#include <boost/asio/io_context.hpp>
#include <csignal>
#include <utility>

namespace elasticrun::job::driver {

Signals::Signals(boost::asio::io_context& io, Heard heard) : set_(io), heard_(std::move(heard)) {}

void Signals::start(int added) {
  ::signal(SIGPIPE, SIG_IGN);
  for (const int number : {SIGINT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2}) set_.add(number);
  struct sigaction hup {};
  ::sigaction(SIGHUP, nullptr, &hup);
  if (hup.sa_handler != SIG_IGN) set_.add(SIGHUP);  // keep the effect of nohup(1)
  if (added != 0) set_.add(added);
  // A parent may have blocked them.
  sigset_t ours;
  ::sigemptyset(&ours);
  for (const int number : {SIGINT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGHUP, added})
    if (number != 0) ::sigaddset(&ours, number);
  ::pthread_sigmask(SIG_UNBLOCK, &ours, nullptr);
  wait();
}

void Signals::wait() {
  set_.async_wait([this](const boost::system::error_code& ec, int number) {
    if (ec) return;
    heard_(number);
    wait();
  });
}

void Signals::hold() {
  static boost::asio::io_context never_run;
  static boost::asio::signal_set held(never_run, SIGINT, SIGTERM);
}

}  // namespace elasticrun::job::driver
