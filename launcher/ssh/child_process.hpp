// Child processes of the ssh executor: `ssh -G`, and proxy commands that take the place of a
// connection.
//
// Each runs in its own session (setsid): a ^C at the terminal stops the job gently and must not
// break its connections first, and a command without a terminal fails where it would otherwise ask
// a question.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "net/sockets.hpp"

namespace elasticrun::launcher::ssh {

struct CommandResult {
  int exit_code = 0;  // 128 + signal number if a signal ended it
  std::string out;
  std::string err;
};
// Looks a program up in PATH and returns its path. Touches files.
Result<std::string> find_program(const std::string& name);
// Runs a command to its end; the command is killed when the coroutine is cancelled.
boost::asio::awaitable<Result<CommandResult>> run_command(boost::asio::io_context& io,
                                                          const std::string& path,
                                                          const std::vector<std::string>& args);

// A shell command whose standard input and output serve as a connection. The command is killed when
// this object is destroyed.
class Proxy {
 public:
  static Result<std::unique_ptr<Proxy>> start(boost::asio::io_context& io,
                                              const std::string& command);
  ~Proxy();
  net::Fd take_socket();
  // Returns what the command has written to its standard error; waits a moment for the command to
  // end.
  boost::asio::awaitable<std::string> last_words();

 private:
  struct State;
  explicit Proxy(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace elasticrun::launcher::ssh
