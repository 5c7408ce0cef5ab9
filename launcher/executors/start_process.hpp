// How we start a process with Boost.Process. It inherits none of our descriptors and, with
// OwnSession, gets a session of its own.
#pragma once

#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/process/v2/process.hpp>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

namespace elasticrun::launcher::executors {

// Initializers for start_process; they run in the child between fork and exec.
struct CloseOnExec {
  template <class Launcher>
  boost::system::error_code on_exec_setup(Launcher&, const boost::process::v2::filesystem::path&,
                                          const char* const*&) {
    ::close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
    return {};
  }
};
// With a session of its own the child does not receive a Ctrl-C at our terminal. SIGPIPE is reset
// to its default, as programs expect it.
struct OwnSession : CloseOnExec {
  template <class Launcher>
  boost::system::error_code on_exec_setup(Launcher& launcher,
                                          const boost::process::v2::filesystem::path& program,
                                          const char* const*& arguments) {
    ::setsid();
    ::signal(SIGPIPE, SIG_DFL);
    return CloseOnExec::on_exec_setup(launcher, program, arguments);
  }
};

// GCC 12 warns, wrongly, that the launcher's three descriptors are copied beyond their end.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Warray-bounds"
#pragma GCC diagnostic ignored "-Wrestrict"
#pragma GCC diagnostic ignored "-Wstringop-overflow"

// Boost's launcher makes the child put the descriptors of its io_context into a new epoll before it
// runs the program. If libssh has closed one of them, that throws in the child, and the child then
// went on as a second controller over the same sockets. So the launcher gets an io_context without
// descriptors.
template <class... Initializers>
boost::process::v2::process start_process(boost::asio::io_context& io,
                                          boost::system::error_code& error,
                                          const std::string& program,
                                          const std::vector<std::string>& arguments,
                                          Initializers&&... initializers) {
  boost::asio::io_context bare;
  boost::process::v2::default_process_launcher launcher;
  boost::process::v2::process started = launcher(bare.get_executor(), error, program, arguments,
                                                 std::forward<Initializers>(initializers)...);
  if (error) return boost::process::v2::process(io.get_executor());
  started = boost::process::v2::process(io.get_executor(), started.id());
  return started;
}

#pragma GCC diagnostic pop

}  // namespace elasticrun::launcher::executors
