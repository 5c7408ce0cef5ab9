// Sockets that listen, and others.
#include "launcher/agent/workers/listeners.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

using boost::asio::ip::tcp;
using elasticrun::launcher::agent::workers::listens;

TEST_CASE("a port is listened to as long as there is such a socket") {
  boost::asio::io_context io;
  for (const tcp::endpoint& any : {tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0),
                                   tcp::endpoint(boost::asio::ip::address_v6::loopback(), 0)}) {
    tcp::acceptor acceptor(io, any);
    const std::uint16_t port = acceptor.local_endpoint().port();
    CHECK(listens(port));
    tcp::socket client(io);
    client.connect(acceptor.local_endpoint());
    CHECK_FALSE(listens(client.local_endpoint().port()));
    const tcp::socket accepted = acceptor.accept();
    acceptor.close();
    CHECK_FALSE(listens(port));  // still connected
  }
}
