// Child processes of the ssh executor: `ssh -G`, and a proxy command that stands for a connection.
//
// Each gets a session of its own: a ^C at the terminal stops the job gently and must not break its
// connections first, and a command without a terminal fails where it would ask a question.
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
  int exit_code = 0;  // 128 + the number of a signal
  std::string out;
  std::string err;
};
// Its path, by PATH; touches files.
Result<std::string> find_program(const std::string& name);
// Killed when the coroutine is cancelled.
boost::asio::awaitable<Result<CommandResult>> run_command(boost::asio::io_context& io,
                                                          const std::string& path,
                                                          const std::vector<std::string>& args);

// A shell command whose standard input and output are a connection. Killed with this object.
class Proxy {
 public:
  static Result<std::unique_ptr<Proxy>> start(boost::asio::io_context& io,
                                              const std::string& command);
  ~Proxy();
  net::Fd take_socket();
  // What it has written to its standard error; waits a moment for it to end.
  boost::asio::awaitable<std::string> last_words();

 private:
  struct State;
  explicit Proxy(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace elasticrun::launcher::ssh
