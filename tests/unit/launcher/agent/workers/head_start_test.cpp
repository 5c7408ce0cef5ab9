// The lead of rank 0, against a port that is listened to.
#include "launcher/agent/workers/head_start.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "launcher/agent/workers/lead.hpp"

using namespace elasticrun;
using launcher::agent::workers::HeadStart;

namespace {

std::int32_t lead(HeadStart& head_start, std::int32_t asked) {
  wire::agent::StartWorker order;
  order.env = {"RANK=1", "MASTER_PORT=1"};
  order.after_ms = asked;
  head_start.begins(order);
  return order.after_ms;
}

}  // namespace

TEST_CASE("the lead is a tenth of the time, within bounds") {
  using launcher::agent::workers::lead_after;
  using std::chrono::milliseconds;
  CHECK(lead_after(milliseconds(0)) == milliseconds(50));
  CHECK(lead_after(milliseconds(1200)) == milliseconds(120));
  CHECK(lead_after(milliseconds(60'000)) == milliseconds(1000));
}

TEST_CASE("the lead is as asked for until it is known how long rank 0 takes to listen") {
  boost::asio::io_context io;
  HeadStart head_start(io);
  CHECK(lead(head_start, 200) == 200);
  CHECK(lead(head_start, 0) == 0);

  boost::asio::ip::tcp::acceptor acceptor(io, {boost::asio::ip::address_v4::loopback(), 0});
  wire::agent::StartWorker first;
  first.env = {"RANK=0", fmt::format("MASTER_PORT={}", acceptor.local_endpoint().port())};
  head_start.begins(first);
  CHECK(first.after_ms == 0);
  io.run();                            // ends when it has been seen
  CHECK(lead(head_start, 200) == 50);  // it took no time: the least lead
  CHECK(lead(head_start, 0) == 0);     // nobody asked for one
}
