// See master_port.hpp.
#include "launcher/agent/workers/master_port.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
#include <list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/numbers.hpp"
#include "net/sockets.hpp"

namespace elasticrun::launcher::agent::workers {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
constexpr auto result = asio::as_tuple(asio::use_awaitable);

constexpr std::size_t copied_at_a_time = 16 << 10;
constexpr int ports = 4;  // MASTER_PORT and those behind it
constexpr Duration first_interval = std::chrono::milliseconds(5);
constexpr Duration longest_interval = std::chrono::milliseconds(100);
constexpr Duration own_interval = std::chrono::seconds(1);

// As rank 0 would open it: on all addresses. -1: it cannot be opened.
net::Fd listen_everywhere(std::uint16_t port) {
  for (const char* address : {"::", "0.0.0.0"})
    if (const Result<int> fd = net::listen_tcp(address, port)) return net::Fd(*fd);
  return net::Fd();
}

// The first of some ports that are all free now.
std::optional<std::uint16_t> free_ports() {
  for (int tries = 0; tries < 100; ++tries) {
    std::list<net::Fd> held;
    held.push_back(listen_everywhere(0));
    if (held.back().get() < 0) return std::nullopt;
    const int first = net::local_port(held.back().get());
    for (int i = 1; i < ports && held.back().get() >= 0 && first + i < 65536; ++i)
      held.push_back(listen_everywhere(static_cast<std::uint16_t>(first + i)));
    if (held.size() == ports && held.back().get() >= 0) return static_cast<std::uint16_t>(first);
  }
  return std::nullopt;
}

std::string* value(std::vector<std::string>& env, std::string_view name) {
  const auto is_it = [&](const std::string& entry) {
    return entry.starts_with(name) && std::string_view(entry).substr(name.size()).starts_with('=');
  };
  const auto found = std::ranges::find_if(env, is_it);
  return found == env.end() ? nullptr : &*found;
}

}  // namespace

// One port, and whoever has come through it.
class MasterPort::Door : public std::enable_shared_from_this<Door> {
 public:
  Door(asio::io_context& io, net::Fd listening, std::uint16_t to, std::size_t connections_max)
      : io_(io), acceptor_(io), opened_(io), to_(to), connections_max_(connections_max) {
    const int family = net::socket_family(listening.get());
    acceptor_.assign(family == AF_INET ? tcp::v4() : tcp::v6(), listening.release());
    opened_.expires_at(asio::steady_timer::time_point::max());
  }

  void open() { spawn(accept(shared_from_this())); }

  void close() {
    open_ = false;
    error_code ignored;
    acceptor_.close(ignored);
    opened_.cancel();
    for (const std::shared_ptr<Connection>& one : connections_) one->close();
    connections_.clear();
  }

 private:
  struct Connection {
    explicit Connection(tcp::socket socket) : in(std::move(socket)), out(in.get_executor()) {}

    void close() {
      error_code ignored;
      in.close(ignored);
      out.close(ignored);
    }

    tcp::socket in, out;  // of who has come, and to rank 0
  };
  // What runs keeps the door, and its connection, as a parameter.
  using Self = std::shared_ptr<Door>;
  using One = std::shared_ptr<Connection>;

  void spawn(asio::awaitable<void> work) { co_spawn(io_, std::move(work), asio::detached); }

  asio::awaitable<void> accept(Self self) {
    while (open_) {
      auto [error, socket] = co_await acceptor_.async_accept(result);
      if (error && open_) co_await pause(longest_interval);  // too many files are open
      if (error || connections_.size() >= connections_max_) continue;
      const auto one = std::make_shared<Connection>(std::move(socket));
      connections_.insert(one);
      spawn(serve(self, one));
    }
  }

  asio::awaitable<void> serve(Self, One one) {
    const error_code failed = co_await reach_rank0(*one);
    if (open_ && !failed) {
      error_code error;
      for (tcp::socket* const socket : {&one->in, &one->out})
        socket->set_option(tcp::no_delay(true), error);
      using namespace asio::experimental::awaitable_operators;
      co_await (copy(one->in, one->out) && copy(one->out, one->in));
    }
    one->close();
    connections_.erase(one);
  }

  // Of all who wait for rank 0, one tries again and again, and then the others; these now and then
  // by themselves, for the one may have dialled an address that rank 0 will not listen on.
  asio::awaitable<error_code> reach_rank0(Connection& one) {
    using namespace asio::experimental::awaitable_operators;
    // Where rank 0 would have been dialled: it may listen on some addresses only.
    error_code error;
    const asio::ip::address address = one.in.local_endpoint(error).address();
    bool tries = false;
    for (Duration interval = first_interval; open_ && !error;) {
      std::tie(error) = co_await one.out.async_connect({address, to_}, result);
      if (error != asio::error::connection_refused) break;
      one.out.close(error);
      tries = tries || !std::exchange(tried_, true);
      if (tries)
        co_await pause(std::exchange(interval, std::min(longest_interval, interval * 11 / 10)));
      else
        co_await (opened_.async_wait(result) || pause(own_interval));
    }
    if (tries) {
      tried_ = false;
      opened_.cancel();
    }
    co_return error;
  }

  // Until one side ends what it has to say, which the other side is told, or is gone.
  static asio::awaitable<void> copy(tcp::socket& from, tcp::socket& to) {
    std::array<char, copied_at_a_time> bytes;
    error_code ignored;
    while (true) {
      const auto [ended, size] = co_await from.async_read_some(asio::buffer(bytes), result);
      if (ended) break;
      const auto [lost, written] =
          co_await asio::async_write(to, asio::buffer(bytes, size), result);
      if (lost) break;
    }
    from.shutdown(tcp::socket::shutdown_receive, ignored);
    to.shutdown(tcp::socket::shutdown_send, ignored);
  }

  asio::awaitable<void> pause(Duration time) {
    asio::steady_timer timer(io_, time);
    (void)co_await timer.async_wait(result);
  }

  asio::io_context& io_;
  tcp::acceptor acceptor_;
  asio::steady_timer opened_;  // cancelled when rank 0 listens
  const std::uint16_t to_;
  const std::size_t connections_max_;
  bool open_ = true;
  bool tried_ = false;
  std::set<One> connections_;
};

void MasterPort::begins(wire::agent::StartWorker& order) {
  const std::string* const rank = value(order.env, "RANK");
  std::string* const master_port = value(order.env, "MASTER_PORT");
  if (!rank || *rank != "RANK=0" || !master_port) return;
  close();
  const auto port =
      whole_number(std::string_view(*master_port).substr(std::strlen("MASTER_PORT=")));
  if (!port || *port < 1 || *port > 65535) return;
  net::Fd first = listen_everywhere(static_cast<std::uint16_t>(*port));
  const std::optional<std::uint16_t> to = free_ports();
  if (first.get() < 0 || !to) return;
  for (int i = 0; i < ports; ++i) {
    net::Fd listening =
        i == 0 ? std::move(first) : listen_everywhere(static_cast<std::uint16_t>(*port + i));
    if (*port + i > 65535 || listening.get() < 0) continue;
    doors_.push_back(std::make_shared<Door>(io_, std::move(listening),
                                            static_cast<std::uint16_t>(*to + i), connections_max_));
    doors_.back()->open();
  }
  *master_port = fmt::format("MASTER_PORT={}", *to);
  rank0_ = order.worker;
}

void MasterPort::close() {
  for (const std::shared_ptr<Door>& door : doors_) door->close();
  doors_.clear();
}

}  // namespace elasticrun::launcher::agent::workers
