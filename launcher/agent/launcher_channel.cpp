// See launcher_channel.hpp.
#include "launcher/agent/launcher_channel.hpp"

#include <unistd.h>

#include <array>
#include <utility>

namespace elasticrun::launcher::agent {

using boost::asio::posix::stream_descriptor;
using boost::system::error_code;

void LauncherChannel::watch(std::function<void()> closed) {
  closed_ = std::move(closed);
  error_code error;
  input_.assign(::dup(STDIN_FILENO), error);
  wait();
}

void LauncherChannel::wait() {
  input_.async_wait(stream_descriptor::wait_read, [this](const error_code& failed) {
    if (failed) return;
    std::array<char, 256> ignored;
    if (::read(input_.native_handle(), ignored.data(), ignored.size()) > 0) return wait();
    input_.close();
    closed_();
  });
}

}  // namespace elasticrun::launcher::agent
