// A connected byte stream as a session needs it, so that a session does not know whether TLS is in
// it.
#pragma once

#include <boost/system/error_code.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace boost::asio {
class io_context;
}

namespace elasticrun::net {

// Who of the two speaks: the one that dialled or the one that listened.
enum class Side { dialler, listener };

// One read and one write may be under way at a time. Who starts an operation keeps the stream alive
// until its `done` has been called, also after close. `done` never runs inside the call that starts
// it.
class Stream {
 public:
  using Done = std::function<void(const boost::system::error_code&, std::size_t bytes)>;

  virtual ~Stream() = default;
  // Before the first read or write. The bytes are always 0.
  virtual void handshake(Done done) = 0;
  virtual void read_some(char* data, std::size_t size, Done done) = 0;
  // All of it; the bytes must stay where they are until done.
  virtual void write_all(std::string_view bytes, Done done) = 0;
  // Tells the peer that nothing more will come. Frames have lengths, so TLS adds no alert of its
  // own here.
  virtual void finish() = 0;
  // Now; what is under way ends with an error.
  virtual void close() = 0;

  // After the handshake, where the stream has keys; a Unix socket has none, because the kernel
  // knows who is at its other end. `identity` names the key that both ends have shown. `proof` is
  // what this side or the other one writes into its greeting: a tag of that key over this
  // connection.
  virtual std::string identity() const { return {}; }
  virtual std::string proof(Side) const { return {}; }
};

// Takes over a connected, non-blocking stream socket.
std::unique_ptr<Stream> make_plain_stream(boost::asio::io_context& io, int fd);

}  // namespace elasticrun::net
