// See worker_socket.hpp.
#include "launcher/agent/workers/worker_socket.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <utility>

#include "launcher/agent/workers/private_directory.hpp"
#include "net/stream.hpp"
#include "wire/frame.hpp"
#include "wire/limits.hpp"

namespace elasticrun::launcher::agent::workers {

WorkerSocket::WorkerSocket(boost::asio::io_context& io, std::string directory,
                           const executors::AgentStart& start, Handlers handlers, Duration interval)
    : io_(io),
      directory_(std::move(directory)),
      path_(directory_ + "/agent.sock"),
      options_{
          .roles = {"worker"},
          .job = start.job,
          .welcome = {.protocol = wire::protocol, .version = start.version, .term = start.term}},
      handlers_(std::move(handlers)),
      interval_(interval),
      timer_(io) {}

bool WorkerSocket::is_there() const {
  struct stat status {};
  return ::lstat(path_.c_str(), &status) == 0 && S_ISSOCK(status.st_mode) &&
         status.st_ino == number_;
}

Result<void> WorkerSocket::ensure() {
  if (!listener_) {
    const Result<void> listening = listen();
    if (listening) look_after();
    return listening;
  }
  if (is_there()) return {};
  const auto failure = [&](const std::string& why) {
    return Error{fmt::format(
        "the socket of this agent was removed ({}), and it cannot be made again: {}; end the "
        "agent of this host, and keep what cleans up there away from it",
        path_, why)};
  };
  if (const auto made = make_directory_again(); !made) return failure(made.error().text);
  listener_.reset();
  if (const auto listening = listen(); !listening) return failure(listening.error().text);
  handlers_.log(fmt::format("the socket of this agent was removed ({}); it is there again", path_));
  return {};
}

Result<void> WorkerSocket::listen() {
  const Result<int> fd = net::listen_unix_socket(path_);
  if (!fd) return fd.error();
  const auto make_stream = [this](int connected) {
    peers_.came(connected);
    return net::make_plain_stream(io_, connected);
  };
  listener_ = std::make_unique<net::Listener>(
      io_, *fd, path_, make_stream, options_,
      net::ListenerHandlers{
          .admit = [this](const wire::Hello& hello, const net::Peer& peer,
                          wire::Welcome&) { return admit(hello.worker, peer.pid); },
          .accepted =
              [this](std::unique_ptr<net::Session> session, const wire::Hello& hello,
                     const net::Peer& peer) {
                peers_.done(peer.pid);
                accepted(hello.worker, std::move(session));
              },
          .refused =
              [this](const net::Peer& peer, const std::string& why) {
                peers_.done(peer.pid);
                handlers_.log(fmt::format("refused a connection of {}: {}", peer.name, why));
              }});
  struct stat status {};
  number_ = ::lstat(path_.c_str(), &status) == 0 ? status.st_ino : 0;
  return {};
}

Result<void> WorkerSocket::admit(WorkerId worker, pid_t peer) {
  const pid_t shim = handlers_.shim_of(worker);
  if (shim < 0) return Error{"no such worker runs here"};
  if (sessions_.contains(worker)) return Error{"this worker is connected already"};
  if (peers_.is_below(peer, shim)) return {};
  return Error{fmt::format(
      "process {} was not started by the program of worker {}, unless by a daemon on its behalf",
      peer, worker.value)};
}

void WorkerSocket::accepted(WorkerId worker, std::unique_ptr<net::Session> session) {
  read(worker, *session);
  if (!notice_.empty()) session->send(worker, notice_);
  sessions_[worker] = std::move(session);
}

void WorkerSocket::read(WorkerId worker, net::Session& session) {
  session.start(
      {.on_frame = [this, worker](WorkerId, std::string_view message) { take(worker, message); },
       .on_close = [this, worker](const std::string&) { sessions_.erase(worker); }},
      wire::worker_message_bytes_max);
}

// Each worker has a share of what may be unacknowledged. One above its share has to wait, and its
// messages wait in its socket; the others are still read.
bool WorkerSocket::must_wait(WorkerId worker) const {
  const std::size_t share = wire::worker_messages_high / std::max<std::size_t>(sessions_.size(), 1);
  return handlers_.untaken(worker) > share;
}

void WorkerSocket::take(WorkerId worker, std::string_view message) {
  handlers_.on_message(worker, message);
  if (!must_wait(worker)) return;
  sessions_.at(worker)->hold();
  waiting_.insert(worker);
}

void WorkerSocket::read_on() {
  for (const WorkerId worker : std::set(waiting_)) {
    if (must_wait(worker)) continue;
    waiting_.erase(worker);
    if (const auto session = sessions_.find(worker); session != sessions_.end())
      read(worker, *session->second);
  }
}

void WorkerSocket::tell_all(std::string message) {
  notice_ = std::move(message);
  for (const auto& [worker, session] : sessions_) session->send(worker, notice_);
}

void WorkerSocket::send(WorkerId worker, std::string_view message) {
  if (worker == wire::several_workers) {
    const Result<wire::ForSeveral> several = wire::read_for_several(message);
    if (!several) return handlers_.log(several.error().text);
    for (const WorkerId one : several->workers)
      if (one != wire::several_workers) send(one, several->message);
    return;
  }
  const auto session = sessions_.find(worker);
  if (session != sessions_.end()) session->second->send(worker, message);
}

// Makes the directory again. Where all users may write, another user may have made one of that name
// meanwhile.
Result<void> WorkerSocket::make_directory_again() {
  if (::mkdir(directory_.c_str(), 0700) == 0) {
    lock_ = lock_directory(directory_);
    return {};
  }
  const int error = errno;
  struct stat status {};
  if (error != EEXIST || ::lstat(directory_.c_str(), &status) != 0)
    return Error{net::error_text(error)};
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & 077) != 0)
    return Error{fmt::format("'{}' is no longer the agent's", directory_)};
  return {};
}

void WorkerSocket::look_after() {
  timer_.expires_after(std::chrono::duration_cast<boost::asio::steady_timer::duration>(interval_));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    // An error is reported when a worker is to be started.
    (void)ensure();
    for (const std::string& path : {directory_, path_}) touch(path);
    look_after();
  });
}

}  // namespace elasticrun::launcher::agent::workers
