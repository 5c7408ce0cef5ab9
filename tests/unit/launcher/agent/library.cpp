// A worker that is nothing but its library: it greets the agent with its worker's number or the one
// given, sends "up", and prints what the controller sends, except leases, until the agent closes.
#include <cstdio>
#include <cstdlib>
#include <string>

#include <boost/asio/io_context.hpp>

#include "net/dial.hpp"
#include "net/lifeline.hpp"

using namespace elasticrun;

int main(int count, char** arguments) {
  const char* const socket = std::getenv("ELASTICRUN_SOCKET");
  const char* const worker = count > 1 ? arguments[1] : std::getenv("ELASTICRUN_WORKER");
  if (!socket || !worker) return 2;
  wire::Hello hello{.protocol = wire::protocol, .role = "worker", .job = "job-1"};
  hello.worker = WorkerId(static_cast<std::uint32_t>(std::stoul(worker)));
  const auto print = [](const std::string& line) {
    std::puts(line.c_str());
    std::fflush(stdout);
  };
  const net::HeldLifeline held(net::lifeline_path(socket, hello.worker));
  boost::asio::io_context io{1};
  std::unique_ptr<net::Session> session;
  const auto dial = net::dial_unix(
      io, socket, hello, std::chrono::seconds(20), [&](Result<net::Greeted> greeted) {
        if (!greeted) return print(greeted.error().text);
        session = std::move(greeted->session);
        session->start({.on_frame =
                            [&](WorkerId, std::string_view text) {
                              if (!text.starts_with(R"({"Lease")")) print(std::string(text));
                            },
                        .on_close = [&](const std::string&) { session.reset(); }});
        session->send(WorkerId{}, "up");
        print("connected");
      });
  io.run();
}
