// MASTER_PORT, dialled before rank 0 listens and after.
#include "launcher/agent/workers/master_port.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <functional>
#include <string>
#include <thread>

#include "base/numbers.hpp"
#include "net/sockets.hpp"

using namespace elasticrun;
using boost::asio::ip::tcp;
using launcher::agent::workers::MasterPort;

namespace {

const auto localhost = boost::asio::ip::address_v4::loopback();

// An agent that runs on a thread of its own, and its MASTER_PORT, to which rank 0 does not listen.
struct Agent {
  Agent() : port(net::free_port("::")), rank0_port(port_told(0)) {
    thread = std::thread([this] { io.run(); });
  }
  ~Agent() {
    io.stop();
    thread.join();
  }

  std::uint16_t port_told(int rank) {
    wire::agent::StartWorker order;
    order.worker = WorkerId(static_cast<std::uint32_t>(rank) + 1);
    order.env = {"A=b", fmt::format("RANK={}", rank), fmt::format("MASTER_PORT={}", port)};
    master_port.begins(order);
    CHECK(order.env.size() == 3);
    return static_cast<std::uint16_t>(
        whole_number(order.env[2].substr(std::string("MASTER_PORT=").size())).value_or(0));
  }
  // On the agent's thread.
  void end(int rank) {
    boost::asio::post(
        io, [this, rank] { master_port.ended(WorkerId(static_cast<std::uint32_t>(rank) + 1)); });
  }

  boost::asio::io_context io;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{io.get_executor()};
  MasterPort master_port{io, 2};
  const std::uint16_t port, rank0_port;
  std::thread thread;
};

tcp::socket dialled(boost::asio::io_context& io, int port,
                    const boost::asio::ip::address& address = localhost) {
  tcp::socket socket(io);
  socket.connect({address, static_cast<std::uint16_t>(port)});
  return socket;
}

void say(tcp::socket& socket, const std::string& text) {
  boost::asio::write(socket, boost::asio::buffer(text));
}

std::string heard(tcp::socket& socket, std::size_t size) {
  std::string text(size, ' ');
  boost::asio::read(socket, boost::asio::buffer(text));
  return text;
}

bool ends(tcp::socket& socket) {
  char byte = 0;
  boost::system::error_code error;
  boost::asio::read(socket, boost::asio::buffer(&byte, 1), error);
  return static_cast<bool>(error);
}

}  // namespace

TEST_CASE("whoever dials MASTER_PORT before rank 0 listens waits, and is handed on") {
  Agent agent;
  CHECK(agent.rank0_port != agent.port);
  CHECK(agent.port_told(1) == agent.port);
  boost::asio::io_context io;
  for (const int behind : {0, 1, 3}) {
    tcp::socket early = dialled(io, agent.port + behind);
    say(early, "early");
    tcp::acceptor rank0(io, {localhost, static_cast<std::uint16_t>(agent.rank0_port + behind)});
    tcp::socket first = rank0.accept();
    CHECK(heard(first, 5) == "early");
    say(first, "welcome");
    CHECK(heard(early, 7) == "welcome");

    tcp::socket late = dialled(io, agent.port + behind);
    tcp::socket second = rank0.accept();
    const std::string much(10 << 20, 'x');
    std::thread writer([&] {
      say(late, much);
      late.shutdown(tcp::socket::shutdown_send);
    });
    CHECK(heard(second, much.size()) == much);
    writer.join();
    CHECK(ends(second));  // the end of what one side says, while the other goes on
    say(second, "bye");
    CHECK(heard(late, 3) == "bye");
  }
}

TEST_CASE("who has dialled an address that rank 0 does not listen on keeps nobody waiting") {
  Agent agent;
  boost::asio::io_context io;
  tcp::socket astray = dialled(io, agent.port, boost::asio::ip::make_address("127.0.0.2"));
  tcp::socket one = dialled(io, agent.port);
  tcp::acceptor rank0(io, {localhost, agent.rank0_port});
  tcp::socket of_one = rank0.accept();
  say(of_one, "welcome");
  CHECK(heard(one, 7) == "welcome");
  agent.end(0);
  CHECK(ends(astray));
}

TEST_CASE("after rank 0 nobody is handed on, and no more at a time than may be") {
  Agent agent;
  boost::asio::io_context io;
  tcp::acceptor rank0(io, {localhost, agent.rank0_port});
  tcp::socket one = dialled(io, agent.port), of_one = rank0.accept();
  tcp::socket two = dialled(io, agent.port), of_two = rank0.accept();
  tcp::socket too_many = dialled(io, agent.port);
  CHECK(ends(too_many));
  of_one.close();
  CHECK(ends(one));

  agent.end(1);  // another worker
  say(two, "still");
  CHECK(heard(of_two, 5) == "still");
  agent.end(0);
  CHECK(ends(two));
  CHECK(ends(of_two));
  tcp::socket after(io);
  boost::system::error_code refused;
  after.connect({localhost, agent.port}, refused);
  CHECK(refused);
}
