// Tries the include table on bad examples, then on the tree.
#include "tests/house/includes.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace elasticrun::house;

namespace {

struct Row {
  std::string path, include;
  bool allowed;
};

const Row rows[] = {
    // folders
    {"src/base/ids.hpp", "\"base/result.hpp\"", true},
    {"src/base/ids.hpp", "\"wire/messages.hpp\"", false},
    {"src/net/session.cpp", "\"wire/frame.hpp\"", true},
    {"src/autoscaler/policy.cpp", "\"wire/messages.hpp\"", false},
    {"rendezvous/membership.cpp", "\"launcher/hosts/hosts.hpp\"", false},
    {"launcher/hosts/plan.cpp", "\"job/spec.hpp\"", false},
    {"launcher/agent/agent_core.cpp", "\"launcher/executors/wrap.hpp\"", true},
    {"launcher/hosts/plan.cpp", "\"launcher/agent/agent.hpp\"", false},
    {"launcher/agent/link/redial.hpp", "\"launcher/agent/agent_core.hpp\"", false},
    {"worker/core/member.cpp", "\"rendezvous/membership.hpp\"", false},
    {"src/job/core/job.cpp", "\"autoscaler/policy.hpp\"", true},
    {"src/job/core/job.cpp", "\"net/session.hpp\"", false},
    {"src/simulate/faults/world.cpp", "\"worker/core/member.hpp\"", true},
    {"src/simulate/faults/world.cpp", "\"worker/collective/gloo_group.hpp\"", false},
    {"src/cli/run/options.cpp", "\"job/spec.hpp\"", true},
    {"src/cli/run/options.cpp", "\"worker/core/member.hpp\"", false},
    {"src/main.cpp", "\"cli/run/run.hpp\"", true},
    {"src/main.cpp", "\"job/core/job.hpp\"", false},
    {"src/job/spec.cpp", "\"spec.hpp\"", false},
    {"src/job/spec.cpp", "\"boost/asio.hpp\"", false},
    {"worker/include/elasticrun/elasticrun.hpp", "\"base/ids.hpp\"", false},
    {"worker/include/elasticrun/elasticrun.hpp", "\"elasticrun/elasticrun.h\"", true},
    {"worker/examples/fashion/main.cpp", "\"idx.hpp\"", true},
    {"worker/examples/fashion/main.cpp", "\"elasticrun/elasticrun.hpp\"", true},
    {"worker/examples/fashion/main.cpp", "\"worker/core/member.hpp\"", false},
    {"worker/api/c_api.cpp", "\"elasticrun/elasticrun.h\"", true},
    {"launcher/hosts/plan.cpp", "\"elasticrun/elasticrun.h\"", false},
    {"tests/unit/job/spec_test.cpp", "\"worker/core/member.hpp\"", true},
    // libraries
    {"src/net/session.cpp", "<boost/asio/ip/tcp.hpp>", true},
    {"rendezvous/membership.cpp", "<boost/asio.hpp>", false},
    {"launcher/executors/local_executor.cpp", "<boost/process/v2.hpp>", true},
    {"launcher/hosts/plan.cpp", "<boost/process/v2.hpp>", false},
    {"src/wire/codec.cpp", "<boost/json.hpp>", true},
    {"src/wire/codec.hpp", "<boost/json.hpp>", false},
    {"src/job/event.cpp", "<boost/json.hpp>", false},
    {"src/cli/run/options.cpp", "<CLI/CLI.hpp>", true},
    {"src/cli/run/options.hpp", "<CLI/CLI.hpp>", false},
    {"worker/collective/gloo_group.cpp", "<gloo/context.h>", true},
    {"worker/training/gradient_reduction.cpp", "<gloo/allreduce.h>", false},
    {"worker/control/connection.cpp", "<openssl/ssl.h>", false},
    {"src/base/time.cpp", "<fmt/format.h>", true},
    {"worker/include/elasticrun/elasticrun.hpp", "<fmt/format.h>", false},
    {"src/wire/described.hpp", "<boost/json.hpp>", true},
    {"launcher/executors/agent_start.cpp", "<boost/json.hpp>", false},
    {"src/base/time.cpp", "<spdlog/spdlog.h>", false},
    {"src/base/time.cpp", "<doctest/doctest.h>", false},
    // the system
    {"rendezvous/membership.cpp", "<vector>", true},
    {"rendezvous/membership.cpp", "<mutex>", false},
    {"rendezvous/membership.cpp", "<sys/socket.h>", false},
    {"launcher/agent/spawn.cpp", "<sys/wait.h>", true},
    {"launcher/agent/agent_core.cpp", "<sys/wait.h>", false},
    {"launcher/agent/agent_core.cpp", "<boost/asio.hpp>", false},
    {"launcher/hosts/host_line.cpp", "<arpa/inet.h>", true},
    {"worker/examples/fashion/main.cpp", "<thread>", true},
};

}  // namespace

TEST_CASE("the include rules on examples") {
  for (const Row& row : rows) {
    CAPTURE(row.path);
    CAPTURE(row.include);
    const Violations found = include_violations({row.path, "#include " + row.include + "\n"});
    CHECK(found.empty() == row.allowed);
  }
  CHECK(include_violations({"src/base/a.hpp", "// #include \"wire/messages.hpp\"\n"}).empty());
}

TEST_CASE("a header that no file includes is found") {
  const std::vector<Source> tree = {
      {"src/base/a.cpp", "#include \"base/a.hpp\"\n"},
      {"src/base/a.hpp", ""},
      {"src/base/b.hpp", ""},
      {"launcher/hosts/hosts.cpp", "#include \"launcher/hosts/hosts.hpp\"\n"},
      {"launcher/hosts/hosts.hpp", ""},
      {"worker/examples/x/net.hpp", ""},
      {"worker/examples/x/main.cpp", "#include \"net.hpp\"\n"}};
  const Violations found = unused_headers(tree);
  REQUIRE(found.size() == 1);
  CHECK(found[0].starts_with("src/base/b.hpp:"));
}

TEST_CASE("the tree keeps the include rules") {
  const std::vector<Source> tree = read_tree(ELASTICRUN_ROOT);
  for (const Source& source : tree)
    for (const std::string& violation : include_violations(source)) FAIL_CHECK(violation);
  for (const std::string& violation : unused_headers(tree)) FAIL_CHECK(violation);
}
