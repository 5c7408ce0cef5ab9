// The line that an agent reads from its standard input.
#include "launcher/executors/agent_start.hpp"

#include <doctest/doctest.h>

namespace elasticrun::launcher::executors {
namespace {

AgentStart example() {
  AgentStart start;
  start.job = "j\"1";
  start.identity = "j1/host/7";
  start.key_hex = std::string(64, 'a');
  start.term = Term{3};
  start.host = HostId{7};
  start.name = "n1";
  start.addresses = {"10.0.0.1", "::1"};
  start.port = 65535;
  start.version = "1.2.3";
  return start;
}

TEST_CASE("an AgentStart survives a round trip, in one line") {
  const std::string line = encode(example());
  CHECK(line.find('\n') == line.size() - 1);
  const Result<AgentStart> back = decode_agent_start(line);
  REQUIRE(back.has_value());
  CHECK(encode(*back) == line);
  CHECK(back->term == Term{3});
  CHECK(back->host == HostId{7});
  CHECK(back->addresses == std::vector<std::string>{"10.0.0.1", "::1"});
  CHECK(back->port == 65535);
}

TEST_CASE("unknown members are ignored, and missing ones keep their defaults") {
  const std::string line = R"({"identity":"j1/host/7","key_hex":")" + std::string(64, '0') +
                           R"(","addresses":["127.0.0.1"],"port":1,"colour":"red"})";
  const Result<AgentStart> start = decode_agent_start(line);
  REQUIRE(start.has_value());
  CHECK(start->lease_ms == AgentStart{}.lease_ms);
}

TEST_CASE("an agent that can ask for a stream needs no address") {
  AgentStart start = example();
  start.addresses.clear();
  start.stream = "word";
  const Result<AgentStart> back = decode_agent_start(encode(start));
  REQUIRE(back.has_value());
  CHECK(back->stream == "word");
}

TEST_CASE("the key of a job survives a round trip, and a wrong one is refused") {
  const JobKey key{"j1", "j1/join", std::string(64, 'b'), "1.2.3"};
  const Result<JobKey> back = decode_job_key(encode(key), "a.key");
  REQUIRE(back.has_value());
  CHECK(encode(*back) == encode(key));
  for (const char* line :
       {"", "hello", "[]", "{}", "{\"job\":\"j1\"}", "{\"job\":\"j1\",\"key_hex\":\"12\"}",
        "{\"job\":1}", "{\"job\":\"j1\",\"identity\":\"\"}"}) {
    const Result<JobKey> wrong = decode_job_key(line, "a.key");
    REQUIRE_FALSE(wrong.has_value());
    CHECK(wrong.error().text.starts_with("a.key: not the key of a job"));
  }
}

TEST_CASE("a wrong line is refused with the reason") {
  const auto error_of = [](auto change) {
    AgentStart start = example();
    change(start);
    const Result<AgentStart> back = decode_agent_start(encode(start));
    return back ? std::string("accepted") : back.error().text;
  };
  CHECK(error_of([](AgentStart& s) { s.key_hex.pop_back(); }).find("key_hex") != std::string::npos);
  CHECK(error_of([](AgentStart& s) { s.key_hex[5] = 'g'; }).find("key_hex") != std::string::npos);
  for (const std::size_t size : {0, 129})
    CHECK(error_of([&](AgentStart& s) { s.identity.assign(size, 'i'); }).find("identity") !=
          std::string::npos);
  CHECK(error_of([](AgentStart& s) { s.addresses.clear(); }).find("addresses") !=
        std::string::npos);
  CHECK(error_of([](AgentStart& s) { s.port = 0; }).find("port") != std::string::npos);
  CHECK(error_of([](AgentStart& s) { s.lease_ms = 0; }).find("lease_ms") != std::string::npos);
  CHECK(error_of([](AgentStart& s) { s.orphan_grace_ms = -1; }).find("orphan_grace_ms") !=
        std::string::npos);
  for (const char* line : {"", "hello", "[]", "{\"port\":1", "{} {}"})
    CHECK(decode_agent_start(line).error().text.find("expected one line of JSON") !=
          std::string::npos);
  CHECK(decode_agent_start(R"({"port":70000})").error().text.find("AgentStart.port") !=
        std::string::npos);
  CHECK(
      decode_agent_start(R"({"addresses":"10.0.0.1"})").error().text.find("AgentStart.addresses") !=
      std::string::npos);
}

}  // namespace
}  // namespace elasticrun::launcher::executors
