// See tls.hpp. OpenSSL asks for the key by callback: the client's offers it, the server's finds it
// by its identity. Both build the same artificial session around the 32 bytes.
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

// One per listener or dial, shared by its streams; the callbacks find the key through it.
struct TlsContext {
  TlsContext(const TlsKey& k, ssl::context::method method);
  ~TlsContext() { OPENSSL_cleanse(key.secret.data(), key.secret.size()); }
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  TlsKey key;
  ssl::context context;
};

// A slot of our own: the one that OpenSSL calls app data belongs to Asio.
int context_slot() {
  static const int slot = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return slot;
}

const TlsKey& key_of(const SSL* connection) {
  return static_cast<TlsContext*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(connection), context_slot()))
      ->key;
}

// Owned by OpenSSL afterwards. Null when memory is out.
SSL_SESSION* make_session(SSL* connection) {
  constexpr unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};  // RFC 8446, B.4
  const TlsKey& key = key_of(connection);
  SSL_SESSION* session = SSL_SESSION_new();
  const SSL_CIPHER* cipher = SSL_CIPHER_find(connection, aes_128_gcm_sha256);
  if (session && cipher &&
      SSL_SESSION_set1_master_key(session, key.secret.data(), key.secret.size()) == 1 &&
      SSL_SESSION_set_cipher(session, cipher) == 1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
    return session;
  SSL_SESSION_free(session);
  return nullptr;
}

int offer_key(SSL* connection, const EVP_MD* hash, const unsigned char** id, std::size_t* id_size,
              SSL_SESSION** session) {
  const TlsKey& key = key_of(connection);
  *session = nullptr;
  // A server that asks for another hash (a retried hello) cannot be one of ours.
  if (hash && EVP_MD_get_type(hash) != NID_sha256) return 1;
  *session = make_session(connection);
  *id = reinterpret_cast<const unsigned char*>(key.job.data());
  *id_size = key.job.size();
  return *session ? 1 : 0;
}

int find_key(SSL* connection, const unsigned char* id, std::size_t id_size, SSL_SESSION** session) {
  const std::string_view identity(reinterpret_cast<const char*>(id), id_size);
  // No session is no error: the handshake then fails because there is no certificate either.
  *session = identity == key_of(connection).job ? make_session(connection) : nullptr;
  return 1;
}

TlsContext::TlsContext(const TlsKey& k, ssl::context::method method) : key(k), context(method) {
  ER_CHECK(!key.job.empty() && key.job.size() <= identity_bytes_max);
  SSL_CTX* handle = context.native_handle();
  ER_CHECK(SSL_CTX_set_ex_data(handle, context_slot(), this) == 1);
  ER_CHECK(SSL_CTX_set_ciphersuites(handle, "TLS_AES_128_GCM_SHA256") == 1);
  SSL_CTX_set_num_tickets(handle, 0);
  SSL_CTX_set_session_cache_mode(handle, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_psk_use_session_callback(handle, offer_key);
  SSL_CTX_set_psk_find_session_callback(handle, find_key);
}

class TlsStream final : public Stream {
 public:
  TlsStream(asio::io_context& io, int fd, std::shared_ptr<TlsContext> context,
            ssl::stream_base::handshake_type side)
      : context_(std::move(context)),
        side_(side),
        stream_(asio::generic::stream_protocol::socket(
                    io, asio::generic::stream_protocol(socket_family(fd), 0), fd),
                context_->context) {}

  void handshake(Done done) override {
    stream_.async_handshake(side_, [done = std::move(done)](const error_code& ec) { done(ec, 0); });
  }
  void read_some(char* data, std::size_t size, Done done) override {
    stream_.async_read_some(asio::buffer(data, size), [done = std::move(done)](const error_code& ec,
                                                                               std::size_t bytes) {
      // The end without a TLS alert is an end (see Stream::finish).
      done(ec == ssl::error::stream_truncated ? asio::error::eof : ec, bytes);
    });
  }
  void write_all(std::string_view bytes, Done done) override {
    asio::async_write(stream_, asio::buffer(bytes), std::move(done));
  }
  void finish() override {
    error_code ignored;  // the peer may be gone already: the read says so
    stream_.next_layer().shutdown(asio::socket_base::shutdown_send, ignored);
  }
  void close() override {
    error_code ignored;
    stream_.next_layer().close(ignored);
  }

 private:
  std::shared_ptr<TlsContext> context_;
  ssl::stream_base::handshake_type side_;
  ssl::stream<asio::generic::stream_protocol::socket> stream_;
};

}  // namespace

void use_tls_alone() {
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ADD_ALL_CIPHERS |
                          OPENSSL_INIT_NO_ADD_ALL_DIGESTS | OPENSSL_INIT_NO_ATEXIT,
                      nullptr);
}

MakeStream tls_dialler(asio::io_context& io, const TlsKey& key, const TcpOptions& tcp) {
  auto context = std::make_shared<TlsContext>(key, ssl::context::tlsv13_client);
  return [&io, tcp, context](int fd) {
    set_tcp_options(fd, tcp.user_timeout);
    return std::make_unique<TlsStream>(io, fd, context, ssl::stream_base::client);
  };
}

Operation dial_tls(asio::io_context& io, const std::string& address, std::uint16_t port,
                   const TlsKey& key, const TcpOptions& tcp, const wire::Hello& hello,
                   Duration deadline, DialDone done) {
  return dial_socket(io, connect_tcp(address, port), host_and_port(address, port),
                     tls_dialler(io, key, tcp), hello, deadline, std::move(done));
}

Result<std::unique_ptr<Listener>> listen_tls(asio::io_context& io, const std::string& address,
                                             std::uint16_t port, const TlsKey& key,
                                             const TcpOptions& tcp, ListenerOptions options,
                                             ListenerHandlers handlers) {
  const Result<int> fd = listen_tcp(address, port);
  if (!fd) return fd.error();
  auto context = std::make_shared<TlsContext>(key, ssl::context::tlsv13_server);
  const auto make_stream = [&io, tcp, context](int connected) {
    set_tcp_options(connected, tcp.user_timeout);
    return std::make_unique<TlsStream>(io, connected, context, ssl::stream_base::server);
  };
  return std::make_unique<Listener>(io, *fd, std::string(), make_stream, std::move(options),
                                    std::move(handlers));
}

}  // namespace elasticrun::net
