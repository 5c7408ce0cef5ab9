// TCP with TLS 1.3 and a pre-shared key, and nothing else: no certificate, no other version, no
// session ticket. A peer without the key gets no byte from us beyond a handshake alert, whether it
// dials or listens.
//
// TLS alone does not ensure this: a server may ignore the key that a client offers and show a
// certificate instead. So the dialling side demands a certificate that no peer can have (its store
// of trusted authorities is empty) and checks that the key was used. In addition both greetings
// carry a tag by the key over this very connection (RFC 5705), so that the check does not depend on
// a default of the TLS library.
//
// A pre-shared key instead of certificates: both ends are started by one program that can hand over
// 32 random bytes on standard input, so no certificate is needed. The key exchange is ephemeral
// (psk_dhe_ke of RFC 8446), so a key that leaks later does not decrypt recorded traffic.
//
// Separate from the rest of net/ so that the library in the user's process does not link OpenSSL.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"
#include "net/dial.hpp"
#include "net/keys.hpp"
#include "net/listener.hpp"

namespace elasticrun::net {

struct TlsKey {
  std::string identity;  // names the key, sent in clear; 1 to 128 bytes
  Secret secret{};
};
// Finds a key of the listening side by its name; nullopt: there is no such key. Called during
// handshakes.
using FindKey = std::function<std::optional<Secret>(std::string_view identity)>;

// For a program that uses OpenSSL for nothing else; to be called before any other use of it. Saves
// a third of the processor time of the first handshake: the machine's openssl.cnf is not read (a
// static program could not load the modules that it may name), no algorithm is registered under a
// legacy name, and nothing is cleaned up at exit.
void use_tls_alone();

struct TcpOptions {
  // TCP_USER_TIMEOUT: sent data that stays unacknowledged for this long breaks the connection. 0:
  // the system's default.
  Duration user_timeout = Duration::zero();
};

// A function that turns a connected socket into the dialling side of TLS, for dial_socket.
using MakeStream = std::function<std::unique_ptr<Stream>(int fd)>;
MakeStream tls_dialler(boost::asio::io_context& io, const TlsKey& key, const TcpOptions& tcp);

// `address` is numeric: the agent is a static binary and cannot ask a name service.
[[nodiscard]] Operation dial_tls(boost::asio::io_context& io, const std::string& address,
                                 std::uint16_t port, const TlsKey& key, const TcpOptions& tcp,
                                 const wire::Hello& hello, Duration deadline, DialDone done);

// With `port` 0 the system chooses a port, which Listener::port returns.
Result<std::unique_ptr<Listener>> listen_tls(boost::asio::io_context& io,
                                             const std::string& address, std::uint16_t port,
                                             FindKey find, const TcpOptions& tcp,
                                             ListenerOptions options, ListenerHandlers handlers);

}  // namespace elasticrun::net
