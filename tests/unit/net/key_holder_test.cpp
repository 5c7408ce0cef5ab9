// A peer that holds the key of one host counts as that host's agent and as nothing else, and it
// must follow the protocol.
#include "impostor.hpp"
#include "wire/limits.hpp"

using namespace elasticrun;
using namespace elasticrun::net;
using namespace elasticrun::net::testing;

TEST_CASE("a server that has the key but does not greet like a controller cannot give orders") {
  const auto proven = [](const RawTls& tls) {
    wire::Welcome answer = welcome();
    answer.proof = tls.proof(Side::listener, key_of_host(3));
    return answer;
  };
  struct Case {
    const char* name;
    std::function<void(RawTls&)> act;
    const char* error;
  };
  const Case cases[] = {
      {"half a Welcome in a whole frame",
       [&](RawTls& tls) {
         const std::string whole = wire::encode(proven(tls));
         tls.write_frame(whole.substr(0, whole.size() / 2));
       },
       "did not greet"},
      {"half a frame, and the end",
       [&](RawTls& tls) {
         std::string frame;
         wire::append_frame(frame, WorkerId(), wire::encode(proven(tls)));
         tls.write(std::string_view(frame).substr(0, frame.size() / 2));
       },
       "did not greet"},
      {"a frame that claims more than a welcome may have",
       [](RawTls& tls) { tls.write(std::string_view("\0\x20\0\0\0\0\0\0", 8)); },
       "at most 1048576 are allowed"},
      {"a whole frame of more than a welcome may have",
       [](RawTls& tls) { tls.write_frame(std::string(wire::welcome_bytes_max + 1, ' ')); },
       "at most 1048576 are allowed"},
      {"an order instead of a greeting",
       [](RawTls& tls) {
         tls.write_frame(wire::encode(wire::agent::ToAgent(wire::agent::Heartbeat{})));
       },
       "unknown message"},
      {"a message for a worker",
       [&](RawTls& tls) {
         std::string frame;
         wire::append_frame(frame, WorkerId(1), wire::encode(proven(tls)));
         tls.write(frame);
       },
       "a message came first"},
      {"another version of the protocol",
       [&](RawTls& tls) {
         wire::Welcome answer = proven(tls);
         ++answer.protocol;
         tls.write_frame(wire::encode(answer));
       },
       "speaks protocol"},
      {"the proof of another host's key",
       [&](RawTls& tls) {
         wire::Welcome answer = welcome();
         answer.proof = tls.proof(Side::listener, key_of_host(4));
         tls.write_frame(wire::encode(answer));
       },
       "does not prove it"},
      {"the proof of the join key",
       [&](RawTls& tls) {
         wire::Welcome answer = welcome();
         answer.proof = tls.proof(Side::listener, to_tls(keys.to_join()));
         tls.write_frame(wire::encode(answer));
       },
       "does not prove it"},
      {"a refusal without proof",
       [](RawTls& tls) {
         wire::Welcome answer = welcome();
         answer.refused = "go away";
         tls.write_frame(wire::encode(answer));
       },
       "does not prove it"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.name);
    const DialledImpostor agent([&](Fd socket) {
      RawTls tls(std::move(socket), true, {.key = key_of_host(3)});
      REQUIRE(tls.connected());
      one.act(tls);
      tls.read();
    });
    CHECK_FALSE(agent.got_session);
    CHECK_MESSAGE(agent.error.find(one.error) != std::string::npos, agent.error);
  }
}

TEST_CASE("a client with a host's key can only be that host's agent") {
  Rendezvous rendezvous;
  struct Case {
    const char* name;
    std::function<void(wire::Hello&)> change;
    const char* why;
  };
  const Case cases[] = {
      {"a worker", [](wire::Hello& hello) { hello.role = "worker"; }, "expected the role"},
      {"a controller", [](wire::Hello& hello) { hello.role = "controller"; }, "expected the role"},
      {"no role", [](wire::Hello& hello) { hello.role.clear(); }, "expected the role"},
      {"the watchdog of a host that is not up", [](wire::Hello& hello) { hello.role = "watchdog"; },
       "is not up"},
      {"the watchdog of another host",
       [](wire::Hello& hello) {
         hello.role = "watchdog";
         hello.host = HostId(5);
       },
       "it claims to be host 5"},
      {"an agent that was never up and resumes", [](wire::Hello& hello) { hello.resumes = 0; },
       "was given up"},
      {"a host that joins", [](wire::Hello& hello) { hello.host = no_host; }, "it claims to be"},
      {"another job", [](wire::Hello& hello) { hello.job = "job-2"; }, "this is job"},
      {"another protocol", [](wire::Hello& hello) { ++hello.protocol; }, "you speak protocol"},
      {"another version", [](wire::Hello& hello) { hello.version = "9.9.8"; }, "use one version"},
      {"of a later controller", [](wire::Hello& hello) { hello.term = Term(2); },
       "a newer controller"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.name);
    wire::Hello hello = agent_hello(HostId(4));
    one.change(hello);
    CHECK_FALSE(rendezvous.admits({.key = key_of_host(4)}, [&](RawTls& tls) {
      Rendezvous::greet(tls, hello, key_of_host(4));
    }));
    REQUIRE_FALSE(rendezvous.rejected.empty());
    const std::string& why = rendezvous.rejected.back();
    CHECK_MESSAGE(why.find(one.why) != std::string::npos, why);
  }
  // The key of an earlier agent of the host is no longer valid.
  const TlsKey earlier = to_tls(keys.of_agent(HostId(4), 0));
  CHECK_FALSE(rendezvous.admits({.key = earlier}, [&](RawTls& tls) {
    Rendezvous::greet(tls, agent_hello(HostId(4)), earlier);
  }));
}

TEST_CASE("a client that has a key but does not greet correctly is rejected") {
  Rendezvous rendezvous;
  const std::string hello = wire::encode(agent_hello(HostId(4)));
  struct Case {
    const char* name;
    std::function<void(RawTls&)> act;
    const char* why;
  };
  const Case cases[] = {
      {"half a greeting in a whole frame",
       [&](RawTls& tls) { tls.write_frame(hello.substr(0, hello.size() / 2)); }, "no greeting"},
      {"half a frame",
       [&](RawTls& tls) {
         std::string frame;
         wire::append_frame(frame, WorkerId(), hello);
         tls.write(std::string_view(frame).substr(0, frame.size() / 2));
       },
       "no greeting"},
      {"a frame that claims more than a greeting may have",
       [](RawTls& tls) { tls.write(std::string_view("\0\x10\0\0\0\0\0\0", 8)); },
       "at most 4096 are allowed"},
      {"a whole frame of more than a greeting may have",
       [](RawTls& tls) { tls.write_frame(std::string(wire::greeting_bytes_max + 1, ' ')); },
       "at most 4096 are allowed"},
      {"a message of a worker",
       [&](RawTls& tls) {
         std::string frame;
         wire::append_frame(frame, WorkerId(1), hello);
         tls.write(frame);
       },
       "a message came first"},
      {"a heartbeat instead of a greeting",
       [](RawTls& tls) {
         tls.write_frame(wire::encode(wire::agent::FromAgent(wire::agent::Heartbeat{})));
       },
       "no greeting"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.name);
    CHECK_FALSE(rendezvous.admits({.key = key_of_host(4)}, one.act));
    REQUIRE_FALSE(rendezvous.rejected.empty());
    const std::string& why = rendezvous.rejected.back();
    CHECK_MESSAGE(why.find(one.why) != std::string::npos, why);
  }
}
