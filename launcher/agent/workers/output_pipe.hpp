// One pipe of a worker's output on its way to the controller, as whole lines.
//
// It uses back-pressure and not a buffer: when the controller takes less than the worker prints,
// the pipe is not read, so the worker blocks in its write, as it would for a slow terminal. Nothing
// is dropped.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <string>

#include "launcher/executors/line_splitter.hpp"
#include "net/sockets.hpp"

namespace elasticrun::launcher::agent::workers {

class OutputPipe {
 public:
  struct Handlers {
    std::function<bool()> full;  // true: hand over no more until resume is called
    std::function<void(std::string lines)> on_lines;
    std::function<void()> on_end;  // once, after the last line
  };

  OutputPipe(boost::asio::io_context& io, net::Fd pipe, Handlers handlers);
  ~OutputPipe();
  OutputPipe(const OutputPipe&) = delete;
  OutputPipe& operator=(const OutputPipe&) = delete;

  // To be called when the reader of the lines has room again.
  void resume();
  // To be called when no process should write any more: ends now, or once the output still in the
  // pipe was taken.
  void expect_end();

 private:
  struct State;
  static void wait(const std::shared_ptr<State>& state);
  static void read(const std::shared_ptr<State>& state);
  static void end(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

}  // namespace elasticrun::launcher::agent::workers
