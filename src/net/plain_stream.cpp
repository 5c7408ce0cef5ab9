// The stream without TLS, for Unix sockets and socketpairs, which are protected by the file system
// and peer credentials.
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "net/sockets.hpp"
#include "net/stream.hpp"

namespace elasticrun::net {
namespace {

namespace asio = boost::asio;

class PlainStream final : public Stream {
 public:
  PlainStream(asio::io_context& io, int fd)
      : io_(io), socket_(io, asio::generic::stream_protocol(socket_family(fd), 0), fd) {}

  void handshake(Done done) override {
    asio::post(io_, [done = std::move(done)] { done({}, 0); });
  }
  void read_some(char* data, std::size_t size, Done done) override {
    socket_.async_read_some(asio::buffer(data, size), std::move(done));
  }
  void write_all(std::string_view bytes, Done done) override {
    asio::async_write(socket_, asio::buffer(bytes), std::move(done));
  }
  void finish() override {
    boost::system::error_code ignored;  // the peer may be gone already: the read reports that
    socket_.shutdown(asio::socket_base::shutdown_send, ignored);
  }
  void close() override {
    boost::system::error_code ignored;
    socket_.close(ignored);
  }

 private:
  asio::io_context& io_;
  asio::generic::stream_protocol::socket socket_;
};

}  // namespace

std::unique_ptr<Stream> make_plain_stream(asio::io_context& io, int fd) {
  return std::make_unique<PlainStream>(io, fd);
}

}  // namespace elasticrun::net
