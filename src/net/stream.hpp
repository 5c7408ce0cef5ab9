// A connected byte stream with the interface that a session needs, so that a session need not know
// whether it uses TLS.
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

// The two ends of a connection: the one that dialled and the one that listened.
enum class Side { dialler, listener };

// One read and one write may be under way at a time. The caller that starts an operation must keep
// the stream alive until its `done` has been called, even after close. `done` never runs inside the
// call that starts the operation.
class Stream {
 public:
  using Done = std::function<void(const boost::system::error_code&, std::size_t bytes)>;

  virtual ~Stream() = default;
  // To be called before the first read or write. `done` gets 0 bytes.
  virtual void handshake(Done done) = 0;
  virtual void read_some(char* data, std::size_t size, Done done) = 0;
  // Writes all of it. The bytes must stay valid and in place until `done`.
  virtual void write_all(std::string_view bytes, Done done) = 0;
  // Tells the peer that nothing more will come. Frames have lengths, so TLS adds no alert of its
  // own here.
  virtual void finish() = 0;
  // Closes at once; operations under way end with an error.
  virtual void close() = 0;

  // These are valid after the handshake, if the stream has keys. A Unix socket has none, because
  // the kernel knows which process is at its other end. `identity` names the key that both ends
  // have shown. `proof` is what the given side writes into its greeting: a tag by that key over
  // this connection.
  virtual std::string identity() const { return {}; }
  virtual std::string proof(Side) const { return {}; }
};

// Takes over a connected, non-blocking stream socket.
std::unique_ptr<Stream> make_plain_stream(boost::asio::io_context& io, int fd);

}  // namespace elasticrun::net
