// A TLS peer that is not our implementation and may misbehave: blocking OpenSSL on its own socket
// and thread, with any key, a certificate, or neither.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/sockets.hpp"
#include "net/tls.hpp"

namespace elasticrun::net {

struct RawTlsOptions {
  std::optional<TlsKey> key;  // offered as a client; as a server, used for every identity
  bool certificate = false;   // self-signed
  int version = TLS1_3_VERSION;
};

class RawTls {
 public:
  // Runs the handshake over a connected socket, which it makes blocking, with a limit of 5 s.
  RawTls(Fd socket, bool server, const RawTlsOptions& options);
  ~RawTls();
  RawTls(const RawTls&) = delete;

  bool connected() const { return connected_; }
  void write(std::string_view bytes);
  void write_frame(const std::string& payload);
  // Returns what the peer sends until it closes or 300 ms pass without a byte.
  std::string read();
  // Returns the first frame's payload; empty when none comes.
  std::string read_frame();
  // As Stream::proof, for the given side and key on this connection.
  std::string proof(Side side, const TlsKey& key) const;

 private:
  struct Deleter {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* connection) const { SSL_free(connection); }
  };
  Fd socket_;
  RawTlsOptions options_;
  std::unique_ptr<SSL_CTX, Deleter> context_;
  std::unique_ptr<SSL, Deleter> connection_;
  bool connected_ = false;
};

// Waits for one connection at a listening socket; the limit is 5 s.
Fd accept_one(int listening);

}  // namespace elasticrun::net
