// What the user reads for each kind of failure, and whether it is tried again.
#include "launcher/ssh/trouble.hpp"

#include <doctest/doctest.h>
#include <netdb.h>

#include <cerrno>
#include <vector>

namespace elasticrun::launcher::ssh {
namespace {

using namespace std::chrono_literals;

SshConfig some_config() {
  SshConfig config;
  config.hostname = "10.0.0.7";
  config.user = "bob";
  config.user_known_hosts = {"/home/ann/.ssh/known_hosts"};
  return config;
}

Symptom error_at(Stage stage, int error) {
  Symptom symptom = symptom_at(stage, "words");
  symptom.error = error;
  return symptom;
}
Symptom key_is(HostKey key) {
  Symptom symptom = symptom_at(Stage::host_key, "words");
  symptom.key = key;
  symptom.fingerprint = "ssh-ed25519 SHA256:abc";
  return symptom;
}
Symptom login_is(Login login, const std::string& text) {
  Symptom symptom = symptom_at(Stage::login, text);
  symptom.login = login;
  return symptom;
}

struct Case {
  Symptom symptom;
  std::string begin;  // of the line
  std::string holds;  // must be in the line as well: the advice
  Retry retry = Retry::never;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> table = {
      {symptom_at(Stage::config, "ssh is not in PATH"), "ssh configuration: the program ssh",
       "openssh-client"},
      {symptom_at(Stage::config, "config: line 3: Bad configuration option: x"),
       "ssh configuration: config: line 3", "--ssh-config"},
      {error_at(Stage::lookup, EAI_NONAME), "name: the name '10.0.0.7' is not known", "HostName"},
      {error_at(Stage::lookup, EAI_AGAIN), "name: no name server", "/etc/hosts"},
      {error_at(Stage::connect, ECONNREFUSED), "connect: 10.0.0.7 port 22 refuses", "sshd",
       Retry::briefly},
      {error_at(Stage::connect, EHOSTUNREACH), "connect: no route to 10.0.0.7 port 22", "address"},
      {error_at(Stage::connect, ETIMEDOUT), "connect: 10.0.0.7 port 22 does not", "firewall"},
      {error_at(Stage::connect, EACCES), "connect: 10.0.0.7 port 22: words", "ssh 10.0.0.7"},
      {symptom_at(Stage::greeting, "Socket error: disconnected"),
       "ssh greeting: 10.0.0.7 port 22 closed the connection", "MaxStartups", Retry::throttled},
      {symptom_at(Stage::greeting, "Socket error: Connection reset by peer"),
       "ssh greeting: 10.0.0.7 port 22 closed the connection", "MaxStartups", Retry::throttled},
      {symptom_at(Stage::greeting, "kex_exchange_identification: Connection closed by remote host"),
       "ssh greeting: 10.0.0.7 port 22 closed the connection", "MaxStartups", Retry::throttled},
      {symptom_at(Stage::greeting,
                  "channel 0: open failed: connect failed: No route to host\nstdio failed"),
       "ssh greeting: the proxy cannot reach", "No route to host; stdio failed"},
      {symptom_at(Stage::greeting, "channel 0: open failed: connect failed: Connection refused"),
       "ssh greeting: 10.0.0.7 port 22 refuses the connection of the proxy", "open failed",
       Retry::briefly},
      {symptom_at(Stage::greeting, "eve@gate: Permission denied (publickey)."),
       "ssh greeting: the jump host does not let us in", "eve@gate"},
      {symptom_at(Stage::greeting, "kex error : no match for method kex algos: server [a]"),
       "ssh greeting: no common algorithm", "KexAlgorithms"},
      {symptom_at(Stage::greeting, ""), "ssh greeting: 10.0.0.7 port 22 cannot be spoken to", ""},
      {key_is(HostKey::unknown), "host key: 10.0.0.7 is not in /home/ann/.ssh/known_hosts",
       "SHA256:abc"},
      {key_is(HostKey::changed), "host key: the key of 10.0.0.7 is not the one", "ssh-keygen -R"},
      {key_is(HostKey::other_type), "host key: the key of 10.0.0.7 is not the one",
       "ssh-ed25519 SHA256:abc"},
      {key_is(HostKey::unreadable), "host key: /home/ann/.ssh/known_hosts cannot", "words"},
      {login_is(Login::denied, "keys, a password"),
       "login: bob may not log in (the host takes keys, a password)", "authorized_keys"},
      {login_is(Login::partial, "questions"), "login: bob may not log in; a key alone",
       "questions besides"},
      {login_is(Login::broken, "Too many authentication failures"), "login: bob may not log in",
       "IdentitiesOnly"},
      {login_is(Login::broken, "Socket error: disconnected"), "login: the host closed", "bob",
       Retry::briefly},
      {symptom_at(Stage::shell, "sh: not found", 127), "login shell: the host has no 'sh'", ""},
      {symptom_at(Stage::shell, "This account is not available", 1),
       "login shell: the login shell of bob ended (1)", "This account is not available"},
      {symptom_at(Stage::shell, "Socket error"), "login shell: the host closed", "",
       Retry::briefly},
      {symptom_at(Stage::copy, "/h (cat: write error: No space left on device)"),
       "copy of the agent: no room", "XDG_CACHE_HOME"},
      {symptom_at(Stage::copy, "/h (Disk quota exceeded)"), "copy of the agent: no room", "/h"},
      {symptom_at(Stage::copy, "/h (mounted noexec)"), "copy of the agent: no place where",
       "noexec"},
      {symptom_at(Stage::copy, "/h (cannot be written to)"),
       "copy of the agent: the agent cannot be kept", "/h"},
      {symptom_at(Stage::run, "", 126), "agent: the agent cannot be run there", "126"},
  };
  return table;
}

TEST_CASE("each trouble has its line") {
  for (const Case& c : cases()) {
    const Trouble trouble = describe(c.symptom, some_config(), 5s);
    CHECK_MESSAGE(trouble.text.starts_with(c.begin), trouble.text);
    CHECK_MESSAGE(trouble.text.find(c.holds) != std::string::npos, trouble.text);
    CHECK_MESSAGE(trouble.text.find('\n') == std::string::npos, trouble.text);
    CHECK_MESSAGE(trouble.retry == c.retry, trouble.text);
  }
}

TEST_CASE("a timeout is reported with its length, and is not tried again") {
  for (const Stage stage : {Stage::config, Stage::lookup, Stage::connect, Stage::greeting,
                            Stage::login, Stage::shell, Stage::copy, Stage::run}) {
    Symptom symptom = symptom_at(stage, "");
    symptom.late = true;
    const Trouble trouble = describe(symptom, some_config(), 5s);
    CHECK_MESSAGE(trouble.text.starts_with(to_text(stage) + ": "), trouble.text);
    CHECK_MESSAGE(trouble.text.find("5.0 s") != std::string::npos, trouble.text);
    CHECK(trouble.retry == Retry::never);
  }
}

TEST_CASE("a key with a passphrase and a foreign system are reported") {
  Symptom locked = login_is(Login::denied, "keys");
  locked.locked_key = "/home/ann/.ssh/id";
  CHECK(describe(locked, some_config(), 5s)
            .text.ends_with("/home/ann/.ssh/id has a passphrase: "
                            "ssh-add it"));
  Symptom foreign = symptom_at(Stage::shell, "runs Linux riscv64, and the agent is for x", 0);
  foreign.foreign = true;
  CHECK(describe(foreign, some_config(), 5s).text ==
        "login shell: the host runs Linux riscv64, and the agent is for x; run an elasticrun that "
        "was built for it");
}

TEST_CASE("another port and an alias are named as known_hosts names them") {
  SshConfig config = some_config();
  config.port = 2222;
  CHECK(describe(key_is(HostKey::unknown), config, 5s)
            .text.starts_with("host key: [10.0.0.7]:2222 is not in"));
  config.host_key_alias = "rack";
  CHECK(
      describe(key_is(HostKey::unknown), config, 5s).text.starts_with("host key: rack is not in"));
}

}  // namespace
}  // namespace elasticrun::launcher::ssh
