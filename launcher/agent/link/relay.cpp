// See relay.hpp.
#include "launcher/agent/link/relay.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <utility>

#include "launcher/executors/stream_blocks.hpp"

namespace elasticrun::launcher::agent::link {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Descriptor = asio::posix::stream_descriptor;

constexpr int socket_bytes = 64 << 10;

}  // namespace

struct Relay::State : std::enable_shared_from_this<Relay::State> {
  using Buffers = std::array<asio::const_buffer, 2>;

  State(asio::io_context& io, net::Fd fd)
      : in(io, ::dup(STDIN_FILENO)), out(io, ::dup(STDOUT_FILENO)), socket(io, fd.release()) {}

  void from_launcher();
  void to_launcher();
  void write_out(const Buffers& bytes, bool last);
  void close();

  Descriptor in;
  Descriptor out;
  Descriptor socket;
  std::string first;
  std::array<char, executors::stream_block_max> incoming, outgoing;
  std::array<char, 2> head{};  // length prefix of the block in outgoing
  bool open = true;
};

void Relay::State::from_launcher() {
  in.async_read_some(asio::buffer(incoming),
                     [self = shared_from_this()](const error_code& ec, std::size_t bytes) {
                       if (!self->open) return;
                       if (ec) {
                         ::shutdown(self->socket.native_handle(), SHUT_WR);
                         return;
                       }
                       asio::async_write(self->socket, asio::buffer(self->incoming, bytes),
                                         [self](const error_code& failed, std::size_t) {
                                           if (!failed && self->open) self->from_launcher();
                                         });
                     });
}

void Relay::State::to_launcher() {
  socket.async_read_some(
      asio::buffer(outgoing), [self = shared_from_this()](const error_code& ec, std::size_t bytes) {
        if (!self->open) return;
        const std::size_t size = ec ? 0 : bytes;
        self->head = executors::stream_block_head(size);
        self->write_out({asio::buffer(self->head), asio::buffer(self->outgoing, size)}, size == 0);
      });
}

// When standard output has no reader any more, the session must notice it in both directions.
void Relay::State::write_out(const Buffers& bytes, bool last) {
  asio::async_write(out, bytes,
                    [self = shared_from_this(), last](const error_code& ec, std::size_t) {
                      if (!self->open) return;
                      if (ec) {
                        ::shutdown(self->socket.native_handle(), SHUT_RDWR);
                        return;
                      }
                      if (!last) self->to_launcher();
                    });
}

void Relay::State::close() {
  open = false;
  error_code ignored;
  for (Descriptor* descriptor : {&in, &out, &socket}) descriptor->close(ignored);
}

Relay::Relay(asio::io_context& io, net::Fd socket, std::string first)
    : state_(std::make_shared<State>(io, std::move(socket))) {
  state_->first = std::move(first);
  state_->write_out({asio::buffer(state_->first), asio::const_buffer()}, false);
  state_->from_launcher();
}

Relay::~Relay() { state_->close(); }

Result<SocketPair> socket_pair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0)
    return Error{fmt::format("cannot make a socket: {}", net::error_text(errno))};
  for (const int fd : fds)
    ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &socket_bytes, sizeof socket_bytes);
  return SocketPair{net::Fd(fds[0]), net::Fd(fds[1])};
}

}  // namespace elasticrun::launcher::agent::link
