// The question to `ssh -G`, and the parsing of its answer.
#include "launcher/ssh/config.hpp"

#include <doctest/doctest.h>

namespace elasticrun::launcher::ssh {
namespace {

using Words = std::vector<std::string>;
const Caller caller{"/home/ann", "ann", "desk.example.org"};

SshConfig read(const std::string& more, const SshOverrides& overrides = {}) {
  const auto config = parse_ssh_answer("host n1\nuser bob\nhostname 10.0.0.7\nport 2222\n" + more,
                                       "n1", overrides, caller);
  REQUIRE(config.has_value());
  return *config;
}

TEST_CASE("the question contains the options of the command line") {
  CHECK(ssh_question("n1", {}) == Words{"-G", "--", "n1"});
  CHECK(ssh_question("n1", {"c", "bob", "key", "a file", 22}) ==
        Words{"-G", "-F", "c", "-l", "bob", "-i", "key", "-p", "22", "-o",
              "UserKnownHostsFile=\"a file\"", "--", "n1"});
}

TEST_CASE("plain values are read") {
  const SshConfig config = read(
      "addressfamily inet6\nconnecttimeout 7\nkexalgorithms a,b\nhostkeyalias rack\n"
      "userknownhostsfile /a /b\nglobalknownhostsfile /c\nno-value-here\n");
  CHECK(config.hostname == "10.0.0.7");
  CHECK(config.user == "bob");
  CHECK(config.port == 2222);
  CHECK(config.address_family == "inet6");
  CHECK(config.connect_timeout == std::chrono::seconds(7));
  CHECK(config.key_exchange == "a,b");
  CHECK(config.host_key_alias == "rack");
  CHECK(config.user_known_hosts == Words{"/a", "/b"});
  CHECK(config.global_known_hosts == Words{"/c"});
  CHECK(config.proxy_command.empty());
  CHECK(!config.accept_new_keys);
  CHECK(read("connecttimeout none\n").connect_timeout == Duration::zero());
}

TEST_CASE("tokens and tildes are replaced") {
  const SshConfig config = read(
      "identityfile ~/.ssh/id_%u_%r\nidentityfile %d/k-%h-%p-%n-%%-%l-%L-%z\n"
      "identityfile none\nidentityagent %d/agent\n");
  CHECK(config.identities == Words{"/home/ann/.ssh/id_ann_bob",
                                   "/home/ann/k-10.0.0.7-2222-n1-%-desk.example.org-desk-%z"});
  CHECK(config.identity_agent == "/home/ann/agent");
  CHECK(read("identityagent SSH_AUTH_SOCK\n").identity_agent.empty());
  CHECK(read("identityagent none\n").identity_agent == "none");
}

TEST_CASE("key files come before the ssh agent when a key was named") {
  CHECK(!read("identitiesonly no\n").files_first);
  CHECK(read("identitiesonly yes\n").files_first);
  CHECK(read("identitiesonly no\n", {.identity = "key"}).files_first);
}

TEST_CASE("new host keys are accepted when the user has configured that") {
  for (const char* value : {"yes", "ask", "true"})
    CHECK(!read(std::string("stricthostkeychecking ") + value + "\n").accept_new_keys);
  for (const char* value : {"accept-new", "no", "off", "false"})
    CHECK(read(std::string("stricthostkeychecking ") + value + "\n").accept_new_keys);
}

TEST_CASE("jump hosts become a command as OpenSSH makes it") {
  CHECK(read("proxyjump gate\n").proxy_command ==
        "ssh -o BatchMode=yes -W '[10.0.0.7]:2222' 'ssh://gate'");
  CHECK(read("proxyjump a,eve@b:99\n", {.config_file = "my file"}).proxy_command ==
        "ssh -o BatchMode=yes -F 'my file' -J 'a' -W '[10.0.0.7]:2222' 'ssh://eve@b:99'");
  CHECK(read("proxyjump ssh://gate:99\n").proxy_command ==
        "ssh -o BatchMode=yes -W '[10.0.0.7]:2222' 'ssh://gate:99'");
  CHECK(read("proxycommand nc -X %% %h %p %r %n\n").proxy_command ==
        "nc -X % 10.0.0.7 2222 bob n1");
  CHECK(read("proxyjump none\nproxycommand none\n").proxy_command.empty());
}

TEST_CASE("an incomplete answer is an error that names the host") {
  for (const char* answer :
       {"", "hostname a\nuser b\n", "hostname a\nport 22\n", "user b\nport 22\n",
        "hostname a\nuser b\nport 0\n", "hostname a\nuser b\nport 99999\n"}) {
    const auto config = parse_ssh_answer(answer, "n1", {}, caller);
    REQUIRE_MESSAGE(!config, answer);
    CHECK(config.error().text.find("'ssh -G n1'") != std::string::npos);
  }
}

TEST_CASE("an answer can be reused for another host name") {
  CHECK(with_hostname("host a\nhostname a\nhostkeyalias hostname a\nport 22\n", "b.c") ==
        "host a\nhostname b.c\nhostkeyalias hostname a\nport 22\n");
  CHECK(with_hostname("", "b") == "");
}

}  // namespace
}  // namespace elasticrun::launcher::ssh
