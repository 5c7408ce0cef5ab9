// One ssh connection by libssh, as coroutines on an io_context of one thread.
//
// libssh never blocks here: each of its calls is repeated while it returns "again", and in between
// the coroutine waits for the descriptor. So a thousand hosts need one thread, and any connection
// can be abandoned at any moment. Threads would be as fast, but a thread that hangs inside libssh
// cannot be ended. For the same reason libssh gets no file to read (files.hpp).
//
// A failure is a Symptom; an empty Failure means success. A cancelled coroutine throws what Asio
// throws.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/executors/file_thread.hpp"
#include "launcher/ssh/config.hpp"
#include "launcher/ssh/trouble.hpp"
#include "net/sockets.hpp"

namespace elasticrun::launcher::ssh {

// Private keys, each parsed once for all hosts.
class KeyRing {
 public:
  KeyRing();
  ~KeyRing();

 private:
  friend class SshSession;
  struct State;
  std::unique_ptr<State> state_;
};

class SshSession {
 public:
  using Failure = std::optional<Symptom>;
  template <class T>
  using Task = boost::asio::awaitable<T>;

  // All arguments must outlive the session.
  SshSession(boost::asio::io_context& io, const SshConfig& config, KeyRing& keys,
             executors::FileThread& file_thread);
  ~SshSession();  // closes the connection, even in the middle of a call
  SshSession(const SshSession&) = delete;
  SshSession& operator=(const SshSession&) = delete;

  // To be called in this order.
  Task<Failure> greet(net::Fd socket);
  Task<Failure> check_host_key();
  Task<Failure> log_in();

  // Starts a command and drops an earlier one. `stage` is the stage of a failure.
  Task<Failure> start(const std::string& command, Stage stage);
  // Writes all bytes, or fewer when the command takes no more; appends what the command prints
  // meanwhile. Calls `progress` from time to time.
  Task<void> write(std::string_view bytes, std::string& out, std::string& err,
                   const std::function<void()>& progress);
  void end_input();
  enum class More { yes, ended, lost };
  // Waits until the command has printed something, which is appended, or has ended, or until wake()
  // was called.
  Task<More> read(std::string& out, std::string& err);
  void wake();

  // The same without waiting, for a caller that moves bytes in both directions at once
  // (control_stream.hpp). Appends what has arrived. Of `out` it takes at most `most` bytes, or all
  // that libssh has in memory if that is more; with 0 it takes nothing of `out`. False: nothing was
  // appended.
  bool take(std::string& out, std::size_t most, std::string& err);
  std::size_t give(std::string_view bytes);  // returns how many were taken
  // Bytes read from the socket so far. Changes when a call took something in, which may lie in
  // libssh's memory where the descriptor does not show it.
  std::uint64_t taken_in() const;
  bool wants_room() const;  // bytes given earlier still wait to be sent
  More more() const;
  bool output_ended() const;  // `out` has ended, and all of it has been taken
  // Calls `ready` once, later: when something has arrived (`for_room`: when there is room to send),
  // or at wake().
  void watch(bool for_room, std::function<void()> ready);

  // Starts a second command beside the first; its output is not read.
  Task<void> start_aside(const std::string& command);

  // The exit code of a command that has ended: its own, 128 + the number of a signal, or -1 if
  // unknown.
  int exit_code() const;
  std::string error() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace elasticrun::launcher::ssh
