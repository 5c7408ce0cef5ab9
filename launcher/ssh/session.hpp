// One ssh connection by libssh, as coroutines on an io_context of one thread.
//
// libssh never waits here: each of its calls is repeated while it says "again", and in between the
// coroutine waits for the descriptor. So a thousand hosts need one thread, and any of them can be
// left at any moment. Threads would be as fast, but one that hangs inside libssh cannot be ended.
// For the same reason it gets no file to read (files.hpp).
//
// What fails is a Symptom; nothing is one that went well. A coroutine that is cancelled throws what
// Asio throws.
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

// Private keys, each understood once for all hosts.
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

  // All must outlive the session.
  SshSession(boost::asio::io_context& io, const SshConfig& config, KeyRing& keys,
             executors::FileThread& file_thread);
  ~SshSession();  // closes the connection, if need be in the middle of a call
  SshSession(const SshSession&) = delete;
  SshSession& operator=(const SshSession&) = delete;

  // Each after the one before.
  Task<Failure> greet(net::Fd socket);
  Task<Failure> check_host_key();
  Task<Failure> log_in();

  // Starts a command; an earlier one is let go. `stage` is where a failure belongs.
  Task<Failure> start(const std::string& command, Stage stage);
  // All of it, or less when the command takes no more; what it prints meanwhile is appended.
  // `progress` is called from time to time.
  Task<void> write(std::string_view bytes, std::string& out, std::string& err,
                   const std::function<void()>& progress);
  void end_input();
  enum class More { yes, ended, lost };
  // Waits until the command has printed something, which is appended, or has ended, or wake() was
  // called.
  Task<More> read(std::string& out, std::string& err);
  void wake();

  // The same without waiting, for who moves bytes both ways at once (control_stream.hpp).
  // Appends what has come, of `out` at most so much, or all that lies in memory where that is more;
  // 0: none of it. False: nothing.
  bool take(std::string& out, std::size_t most, std::string& err);
  std::size_t give(std::string_view bytes);  // how many of them were taken
  // Bytes from the socket so far: what has come during a call may lie in libssh's memory.
  std::uint64_t taken_in() const;
  bool wants_room() const;  // what was given is not on its way yet
  More more() const;
  bool output_ended() const;  // of `out`, and all of it has been taken
  // Calls `ready` once, later: when something has come (or there is room to send), or at wake().
  void watch(bool for_room, std::function<void()> ready);

  // A second command beside the first, whose output nobody reads.
  Task<void> start_aside(const std::string& command);

  // Of a command that has ended: its exit code, 128 + a signal's number, or -1.
  int exit_code() const;
  std::string error() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace elasticrun::launcher::ssh
