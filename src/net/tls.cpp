// See tls.hpp. OpenSSL asks for the key by callbacks: that of the client offers the key, and that
// of the server finds it by its identity. Both build the same artificial session around the 32
// bytes, so a handshake that used the key counts as one that resumed a session.
#include "net/tls.hpp"

#include <openssl/crypto.h>
#include <openssl/ssl.h>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <string_view>
#include <utility>

#include "base/check.hpp"
#include "net/sockets.hpp"
#include "net/stream.hpp"

namespace elasticrun::net {
namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
using boost::system::error_code;

constexpr std::size_t identity_bytes_max = 128;
constexpr char exporter_label[] = "EXPORTER-elasticrun-greeting";  // RFC 5705

// The key of one connection: the dialler knows it from the start, and the listener finds it by the
// name that the dialler offers. OpenSSL's callbacks reach it through a slot of the connection.
struct ConnectionKey {
  TlsKey key;
  FindKey find;  // empty on the dialling side
};

// Our own slot, because the one that OpenSSL calls app data belongs to Asio.
int key_slot() {
  static const int slot = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return slot;
}

ConnectionKey& key_of(const SSL* connection) {
  return *static_cast<ConnectionKey*>(SSL_get_ex_data(connection, key_slot()));
}

// The caller passes the session on to OpenSSL, which owns it afterwards. Null when memory is out.
SSL_SESSION* make_session(SSL* connection, const Secret& secret) {
  constexpr unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};  // RFC 8446, B.4
  SSL_SESSION* session = SSL_SESSION_new();
  const SSL_CIPHER* cipher = SSL_CIPHER_find(connection, aes_128_gcm_sha256);
  if (session && cipher &&
      SSL_SESSION_set1_master_key(session, secret.data(), secret.size()) == 1 &&
      SSL_SESSION_set_cipher(session, cipher) == 1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
    return session;
  SSL_SESSION_free(session);
  return nullptr;
}

int offer_key(SSL* connection, const EVP_MD* hash, const unsigned char** id, std::size_t* id_size,
              SSL_SESSION** session) {
  const TlsKey& key = key_of(connection).key;
  *session = nullptr;
  // A server that wants another hash (in a retried hello) cannot be one of ours.
  if (hash && EVP_MD_get_type(hash) != NID_sha256) return 1;
  *session = make_session(connection, key.secret);
  *id = reinterpret_cast<const unsigned char*>(key.identity.data());
  *id_size = key.identity.size();
  return *session ? 1 : 0;
}

int find_key(SSL* connection, const unsigned char* id, std::size_t id_size, SSL_SESSION** session) {
  ConnectionKey& own = key_of(connection);
  const std::string_view identity(reinterpret_cast<const char*>(id), id_size);
  // To return no session is not an error: the handshake then fails for want of a certificate.
  *session = nullptr;
  const auto secret = id_size <= identity_bytes_max ? own.find(identity) : std::nullopt;
  if (!secret) return 1;
  own.key = {std::string(identity), *secret};
  *session = make_session(connection, *secret);
  return 1;
}

// Makes the TLS context of one listener or dialler, which its streams share.
std::shared_ptr<ssl::context> make_context(ssl::context::method method) {
  const auto context = std::make_shared<ssl::context>(method);
  SSL_CTX* const handle = context->native_handle();
  ER_CHECK(SSL_CTX_set_ciphersuites(handle, "TLS_AES_128_GCM_SHA256") == 1);
  SSL_CTX_set_num_tickets(handle, 0);
  SSL_CTX_set_session_cache_mode(handle, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_psk_use_session_callback(handle, offer_key);
  SSL_CTX_set_psk_find_session_callback(handle, find_key);
  // Against a server that shows a certificate instead of using the key: no signer is trusted.
  if (method == ssl::context::tlsv13_client) context->set_verify_mode(ssl::verify_peer);
  return context;
}

class TlsStream final : public Stream {
 public:
  TlsStream(asio::io_context& io, int fd, std::shared_ptr<ssl::context> context, ConnectionKey key)
      : key_(std::move(key)),
        context_(std::move(context)),
        stream_(asio::generic::stream_protocol::socket(
                    io, asio::generic::stream_protocol(socket_family(fd), 0), fd),
                *context_) {
    ER_CHECK(SSL_set_ex_data(stream_.native_handle(), key_slot(), &key_) == 1);
  }
  ~TlsStream() override { OPENSSL_cleanse(key_.key.secret.data(), key_.key.secret.size()); }

  void handshake(Done done) override {
    const auto side = key_.find ? ssl::stream_base::server : ssl::stream_base::client;
    stream_.async_handshake(side, [this, done = std::move(done)](const error_code& ec) {
      const bool used = SSL_session_reused(stream_.native_handle()) == 1;
      done(!ec && !used ? asio::error::make_error_code(asio::error::no_permission) : ec, 0);
    });
  }
  void read_some(char* data, std::size_t size, Done done) override {
    stream_.async_read_some(asio::buffer(data, size), [done = std::move(done)](const error_code& ec,
                                                                               std::size_t bytes) {
      // An end without a TLS alert is a regular end (see Stream::finish).
      done(ec == ssl::error::stream_truncated ? asio::error::eof : ec, bytes);
    });
  }
  void write_all(std::string_view bytes, Done done) override {
    asio::async_write(stream_, asio::buffer(bytes), std::move(done));
  }
  void finish() override {
    error_code ignored;  // the peer may be gone already: the read reports that
    stream_.next_layer().shutdown(asio::socket_base::shutdown_send, ignored);
  }
  void close() override {
    error_code ignored;
    stream_.next_layer().close(ignored);
  }
  std::string identity() const override { return key_.key.identity; }
  std::string proof(Side side) const override;

 private:
  ConnectionKey key_;
  std::shared_ptr<ssl::context> context_;
  mutable ssl::stream<asio::generic::stream_protocol::socket> stream_;
};

// The tag depends on the connection, so a greeting that was recorded, or passed on from another
// connection, has the wrong tag.
std::string TlsStream::proof(Side side) const {
  Secret exported;
  const std::string_view label = exporter_label;
  ER_CHECK(SSL_export_keying_material(stream_.native_handle(), exported.data(), exported.size(),
                                      label.data(), label.size(), nullptr, 0, 0) == 1);
  std::string message = side == Side::dialler ? "dialler" : "listener";
  message.append(exported.begin(), exported.end());
  return to_hex(tag(key_.key.secret, message));
}

}  // namespace

void use_tls_alone() {
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ADD_ALL_CIPHERS |
                          OPENSSL_INIT_NO_ADD_ALL_DIGESTS | OPENSSL_INIT_NO_ATEXIT,
                      nullptr);
}

MakeStream tls_dialler(asio::io_context& io, const TlsKey& key, const TcpOptions& tcp) {
  ER_CHECK(!key.identity.empty() && key.identity.size() <= identity_bytes_max);
  return [&io, key, tcp, context = make_context(ssl::context::tlsv13_client)](int fd) {
    set_tcp_options(fd, tcp.user_timeout);
    return std::make_unique<TlsStream>(io, fd, context, ConnectionKey{key, nullptr});
  };
}

Operation dial_tls(asio::io_context& io, const std::string& address, std::uint16_t port,
                   const TlsKey& key, const TcpOptions& tcp, const wire::Hello& hello,
                   Duration deadline, DialDone done) {
  return dial_socket(io, connect_tcp(address, port), host_and_port(address, port),
                     tls_dialler(io, key, tcp), hello, deadline, std::move(done));
}

Result<std::unique_ptr<Listener>> listen_tls(asio::io_context& io, const std::string& address,
                                             std::uint16_t port, FindKey find,
                                             const TcpOptions& tcp, ListenerOptions options,
                                             ListenerHandlers handlers) {
  const Result<int> fd = listen_tcp(address, port);
  if (!fd) return fd.error();
  ER_CHECK(find != nullptr);
  const auto make_stream = [&io, find = std::move(find), tcp,
                            context = make_context(ssl::context::tlsv13_server)](int connected) {
    set_tcp_options(connected, tcp.user_timeout);
    return std::make_unique<TlsStream>(io, connected, context, ConnectionKey{{}, find});
  };
  return std::make_unique<Listener>(io, *fd, std::string(), make_stream, std::move(options),
                                    std::move(handlers));
}

}  // namespace elasticrun::net
