// See notice.hpp.
#include "launcher/agent/notice.hpp"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <csignal>
#include <utility>

#include "base/exit_code.hpp"
#include "base/text.hpp"
#include "launcher/agent/log.hpp"

namespace elasticrun::launcher::agent {
namespace {

// Metadata services of clouds are asked every few seconds, by their own advice.
constexpr auto interval = std::chrono::seconds(1);
constexpr Duration one_run_max = std::chrono::hours(1);

}  // namespace

Notice::Notice(boost::asio::io_context& io) : io_(io), signal_(io, SIGUSR2), timer_(io) {
  signal_.async_wait([this](const boost::system::error_code& error, int) {
    if (!error) give("its agent got SIGUSR2");
  });
}

void Notice::watch(const std::string& command, Heard heard) {
  heard_ = std::move(heard);
  if (!reason_.empty()) return boost::asio::post(io_, [this] { give(reason_); });
  if (command.empty()) return;
  command_.emplace(io_, executors::Hook{command, one_run_max});
  ask();
}

void Notice::give(const std::string& reason) {
  reason_ = reason;
  timer_.cancel();
  if (const Heard heard = std::exchange(heard_, nullptr)) heard(reason);
}

void Notice::ask() {
  command_->run({}, [this](executors::HookAnswer answer) {
    if (!reason_.empty()) return;
    if (answer.output) {
      const std::string_view said = last_line(*answer.output);
      return give(said.empty() ? "its --notice command says so" : std::string(said));
    }
    // One that ends with another code has nothing to say yet.
    const bool mistaken = answer.exit_code == exit_code::not_found ||
                          answer.exit_code == exit_code::not_executable || answer.exit_code == 0;
    if (mistaken && !std::exchange(refused_, true))
      log_line("--notice: " + answer.output.error().text);
    ask_again_later();
  });
}

void Notice::ask_again_later() {
  timer_.expires_after(interval);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) ask();
  });
}

}  // namespace elasticrun::launcher::agent
