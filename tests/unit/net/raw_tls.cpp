// See raw_tls.hpp.
#include "raw_tls.hpp"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sys/socket.h>

#include <csignal>

#include "base/check.hpp"
#include "net/stream.hpp"
#include "wire/frame.hpp"

namespace elasticrun::net {
namespace {

constexpr int limit_ms = 5000;
constexpr int quiet_ms = 300;

void set_blocking(int fd, int timeout_ms) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  const timeval limit{timeout_ms / 1000, timeout_ms % 1000 * 1000};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

void use_own_certificate(SSL_CTX* context) {
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509* const certificate = X509_new();
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  X509_NAME* const name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("controller"), -1, -1, 0);
  X509_set_issuer_name(certificate, name);
  X509_sign(certificate, key, EVP_sha256());
  ER_CHECK(SSL_CTX_use_certificate(context, certificate) == 1);
  ER_CHECK(SSL_CTX_use_PrivateKey(context, key) == 1);
  X509_free(certificate);
  EVP_PKEY_free(key);
}

SSL_SESSION* session_of(SSL* connection, const TlsKey& key) {
  constexpr unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
  SSL_SESSION* const session = SSL_SESSION_new();
  SSL_SESSION_set1_master_key(session, key.secret.data(), key.secret.size());
  SSL_SESSION_set_cipher(session, SSL_CIPHER_find(connection, aes_128_gcm_sha256));
  SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION);
  return session;
}

const RawTlsOptions& options_of(SSL* connection) {
  return *static_cast<const RawTlsOptions*>(SSL_get_app_data(connection));
}

int offer(SSL* connection, const EVP_MD*, const unsigned char** id, std::size_t* size,
          SSL_SESSION** session) {
  const auto& key = options_of(connection).key;
  *session = key ? session_of(connection, *key) : nullptr;
  if (!key) return 1;
  *id = reinterpret_cast<const unsigned char*>(key->identity.data());
  *size = key->identity.size();
  return 1;
}

int find(SSL* connection, const unsigned char*, std::size_t, SSL_SESSION** session) {
  const auto& key = options_of(connection).key;
  *session = key ? session_of(connection, *key) : nullptr;
  return 1;
}

}  // namespace

RawTls::RawTls(Fd socket, bool server, const RawTlsOptions& options)
    : socket_(std::move(socket)),
      options_(options),
      context_(SSL_CTX_new(server ? TLS_server_method() : TLS_client_method())) {
  ::signal(SIGPIPE, SIG_IGN);  // the tests are about peers that hang up
  SSL_CTX* const context = context_.get();
  SSL_CTX_set_min_proto_version(context, options_.version);
  SSL_CTX_set_max_proto_version(context, options_.version);
  SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256");
  SSL_CTX_set_psk_use_session_callback(context, offer);
  SSL_CTX_set_psk_find_session_callback(context, find);
  if (options_.certificate) use_own_certificate(context);
  connection_.reset(SSL_new(context));
  SSL_set_app_data(connection_.get(), &options_);
  set_blocking(socket_.get(), limit_ms);
  SSL_set_fd(connection_.get(), socket_.get());
  connected_ = (server ? SSL_accept(connection_.get()) : SSL_connect(connection_.get())) == 1;
}

RawTls::~RawTls() = default;

void RawTls::write(std::string_view bytes) {
  SSL_write(connection_.get(), bytes.data(), static_cast<int>(bytes.size()));
}

void RawTls::write_frame(const std::string& payload) {
  std::string frame;
  wire::append_frame(frame, WorkerId(), payload);
  write(frame);
}

std::string RawTls::read() {
  set_blocking(socket_.get(), quiet_ms);
  std::string bytes;
  char buffer[4096];
  for (int n = 0; (n = SSL_read(connection_.get(), buffer, sizeof buffer)) > 0;)
    bytes.append(buffer, static_cast<std::size_t>(n));
  return bytes;
}

std::string RawTls::read_frame() {
  const std::string bytes = read();
  return bytes.size() < wire::frame_header_bytes ? "" : bytes.substr(wire::frame_header_bytes);
}

std::string RawTls::proof(Side side, const TlsKey& key) const {
  constexpr std::string_view label = "EXPORTER-elasticrun-greeting";
  std::string message = side == Side::dialler ? "dialler" : "listener";
  unsigned char exported[32];
  SSL_export_keying_material(connection_.get(), exported, sizeof exported, label.data(),
                             label.size(), nullptr, 0, 0);
  message.append(std::begin(exported), std::end(exported));
  return to_hex(tag(key.secret, message));
}

Fd accept_one(int listening) {
  pollfd waiting{listening, POLLIN, 0};
  ::poll(&waiting, 1, limit_ms);
  return Fd(accept_socket(listening));
}

}  // namespace elasticrun::net
