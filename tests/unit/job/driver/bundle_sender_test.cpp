// What is sent to which host and when, with real files and simulated hosts.
#include "job/driver/bundle_sender.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>

#include "launcher/bundle/bundle_digest.hpp"

using namespace elasticrun;
using namespace elasticrun::job;
using namespace elasticrun::job::driver;

namespace {

namespace fs = std::filesystem;

// A program of `bytes` bytes, and what each host has received of it.
struct Depot {
  explicit Depot(std::size_t bytes) : text(bytes, 'x') {
    std::string name = fs::temp_directory_path() / "depot-XXXXXX";
    REQUIRE(::mkdtemp(name.data()));
    spec.cwd = name;
    spec.argv = {"./train"};
    spec.ship = true;
    for (std::size_t i = 0; i < bytes; i += 1000) text[i] = static_cast<char>('a' + i / 1000 % 26);
    std::ofstream(path()) << text;
    fs::permissions(path(), fs::perms::owner_all);
  }
  ~Depot() { fs::remove_all(spec.cwd); }
  fs::path path() const { return fs::path(spec.cwd) / "train"; }
  void gather() {
    REQUIRE_FALSE(post.gather());
    wire::agent::StartWorker order;
    post.announce(order);
    hash = order.bundle;
  }
  void ask(std::uint32_t host, std::int64_t taken = 0) {
    post.asked(HostId(host), {hash, taken}, now);
    read();
  }
  // Runs the file thread's reads to their end, so that the parts are sent.
  void read() {
    io.restart();
    io.run();
  }
  // The bytes in flight once the host takes `bytes_per_s`.
  std::int64_t window_at(std::uint32_t host, double bytes_per_s) {
    for (int round = 0; round < 20; ++round) {
      const std::int64_t before = got(host);
      now += elasticrun::Duration(
          static_cast<std::int64_t>(1e9 * static_cast<double>(before - took) / bytes_per_s));
      took = before;
      ask(host, took);
    }
    return got(host) - took;
  }
  std::int64_t got(std::uint32_t host) {
    return static_cast<std::int64_t>(came[HostId(host)].size());
  }
  // The host takes what it receives until nothing more comes.
  void take_all(std::uint32_t host) {
    for (std::int64_t before = -1; before != got(host);) {
      before = got(host);
      ask(host, before);
    }
  }

  boost::asio::io_context io;
  JobSpec spec;
  std::string text, hash, trouble;
  Time now{};
  std::int64_t took = 0;
  std::map<HostId, std::string> came;
  std::set<HostId> ended;
  BundleSender post{io, spec, [this](HostId host, const wire::agent::BundlePart& part) {
                      CHECK(part.bundle == hash);
                      CHECK(part.bytes.value.size() <= launcher::bundle::bundle_part_bytes);
                      CHECK_FALSE(ended.contains(host));
                      came[host] += part.bytes.value;
                      trouble += part.trouble;
                      if (part.last) ended.insert(host);
                    }};
};

constexpr std::int64_t first_window = 2 * launcher::bundle::bundle_ask_bytes;
constexpr auto part_bytes = static_cast<std::int64_t>(launcher::bundle::bundle_part_bytes);

}  // namespace

TEST_CASE("there is no bundle without --ship") {
  Depot depot(10);
  depot.spec.ship = false;
  depot.spec.argv = {"./no-such-program"};
  depot.gather();
  CHECK(depot.hash.empty());
  depot.ask(1);
  CHECK(depot.came.empty());
  depot.spec.ship = true;
  const auto trouble = depot.post.gather();
  REQUIRE(trouble);
  CHECK(trouble->code == 127);
}

TEST_CASE("a host that lost its connection gets the rest, and nothing twice") {
  Depot depot(3'000'000);
  depot.gather();
  depot.ask(1);
  const std::int64_t had = depot.got(1);
  REQUIRE(had > 0);
  depot.post.gone(HostId(1));
  depot.post.asked(HostId(1), {depot.hash, had, true}, depot.now);
  depot.read();
  depot.take_all(1);
  CHECK(depot.came[HostId(1)] == depot.text);
  CHECK(depot.ended.contains(HostId(1)));
}

TEST_CASE("an empty program, a small one and one that fills its parts exactly are delivered") {
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, launcher::bundle::bundle_part_bytes,
        launcher::bundle::bundle_part_bytes * 2}) {
    Depot depot(bytes);
    depot.gather();
    depot.ask(1);
    CHECK(depot.ended.contains(HostId(1)));
    CHECK(depot.came[HostId(1)] == depot.text);
  }
}

TEST_CASE("a host gets one window beyond what it has, and everything in the end") {
  Depot depot(5'000'000);
  depot.gather();
  depot.ask(1);
  CHECK(depot.got(1) >= first_window);
  CHECK(depot.got(1) < first_window + part_bytes);
  const std::int64_t before = depot.got(1);
  depot.now += elasticrun::Duration(std::chrono::seconds(9));
  depot.ask(1, 100'000);
  CHECK(depot.got(1) > before);
  CHECK(depot.got(1) < first_window + 100'000 + part_bytes);
  depot.take_all(1);
  CHECK(depot.came[HostId(1)] == depot.text);
  CHECK(depot.ended.contains(HostId(1)));
  depot.ask(1, 4'000'000);  // a late request does no harm
  CHECK(depot.got(1) == 5'000'000);
}

TEST_CASE("files are read on another thread, and nothing is sent to a host that has gone") {
  Depot depot(1'000'000);
  depot.gather();
  depot.post.asked(HostId(1), {depot.hash, 0}, depot.now);
  CHECK(depot.got(1) == 0);
  depot.post.gone(HostId(1));
  depot.read();
  CHECK(depot.got(1) == 0);
  depot.post.asked(HostId(1), {depot.hash, 0}, depot.now);
  depot.post.asked(HostId(1), {depot.hash, 0}, depot.now);  // from the host's next agent
  depot.take_all(1);
  CHECK(depot.came[HostId(1)] == depot.text);
}

TEST_CASE("the window is what a host takes in half a second, within limits") {
  const auto near = [](std::int64_t window, std::int64_t wanted) {
    return window >= wanted && window < wanted + part_bytes;
  };
  Depot depot(100'000'000);
  depot.gather();
  depot.ask(1);
  CHECK(near(depot.window_at(1, 1e6), 500'000));
  CHECK(near(depot.window_at(1, 1e9), 2 << 20));
  CHECK(near(depot.window_at(1, 1e4), first_window));
  CHECK(near(depot.window_at(1, 2e6), 1'000'000));
}

TEST_CASE("impossible requests of a host do no harm") {
  Depot depot(3'000'000);
  depot.gather();
  depot.ask(1, 100);  // the delivery has not begun
  CHECK(depot.got(1) == 0);
  depot.post.asked(HostId(1), {"another", 0}, depot.now);
  depot.read();
  CHECK(depot.got(1) == 0);
  depot.ask(1);
  for (const std::int64_t taken : {std::int64_t{-5}, std::numeric_limits<std::int64_t>::min(),
                                   std::numeric_limits<std::int64_t>::max()}) {
    const std::int64_t before = depot.got(1);
    depot.ask(1, taken);
    CHECK(depot.got(1) <= before + (2 << 20) + part_bytes);
  }
  depot.take_all(1);
  CHECK(depot.came[HostId(1)] == depot.text);
}

TEST_CASE("hosts wait for their turn, and a host that goes frees its place") {
  Depot depot(3'000'000);
  depot.gather();
  for (std::uint32_t host = 1; host <= 40; ++host) depot.ask(host);
  CHECK(depot.got(32) >= first_window);
  CHECK(depot.got(33) == 0);
  depot.take_all(5);
  CHECK(depot.got(33) >= first_window);
  CHECK(depot.got(34) == 0);
  depot.post.gone(HostId(34));
  depot.post.gone(HostId(6));
  depot.read();
  CHECK(depot.got(34) == 0);
  CHECK(depot.got(35) >= first_window);
  depot.came.erase(HostId(6));
  depot.ask(6);  // its next agent asks
  for (std::uint32_t host = 1; host <= 40; ++host)
    if (host != 34 && host != 6) depot.take_all(host);
  depot.take_all(6);
  for (std::uint32_t host = 1; host <= 40; ++host)
    CHECK_MESSAGE((depot.came[HostId(host)] == depot.text) == (host != 34), host);
}

TEST_CASE("a program that becomes shorter while the job runs is reported") {
  Depot depot(3'000'000);
  depot.gather();
  fs::resize_file(depot.path(), 1'500'000);
  depot.ask(1);
  depot.take_all(1);
  CHECK(depot.trouble ==
        "'" + depot.spec.cwd + "/./train' has become shorter; start the job again");
  CHECK_FALSE(depot.ended.contains(HostId(1)));
}

TEST_CASE("--ship is suggested only where it would help") {
  Depot depot(10);
  depot.spec.ship = false;
  const auto advised = [&](int code) {
    wire::agent::StartFailed failure{WorkerId(1), code, "not found"};
    depot.gather();
    depot.post.advise(failure);
    return failure.reason;
  };
  CHECK(advised(127) == "not found; --ship copies it to hosts that lack it");
  CHECK(advised(126) == "not found");
  depot.spec.ship = true;
  CHECK(advised(127) == "not found");
  depot.spec.ship = false;
  depot.spec.argv = {"./no-such-program"};
  CHECK(advised(127) == "not found");  // the program is missing here as well
  depot.spec.argv = {"./train", "script.py"};
  CHECK(advised(127) != "not found");
  fs::create_symlink("train", depot.path().parent_path() / "python3");
  depot.spec.argv = {"./python3", "script.py"};
  CHECK(advised(127) == "not found");  // an interpreter is not copied
}
