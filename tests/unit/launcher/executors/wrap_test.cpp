// The command of --wrap, inside which an agent is started, and its errors.
#include "launcher/executors/wrap.hpp"

#include <doctest/doctest.h>

namespace elasticrun::launcher::executors {
namespace {

TEST_CASE("a command must be one that every login shell reads alike") {
  for (const char* good : {"numactl -N 0", "nsys profile -o /tmp/a", "docker exec -i \"my box\"",
                           "env A=$HOME", "nice"})
    CHECK_MESSAGE(check_wrap(good).has_value(), good);
  for (const char* bad : {"", " \t", "echo 'a'", "a\\ b", "a!", "a\nb", "a\r"})
    CHECK_MESSAGE(check_wrap(bad).has_error(), bad);
  const std::string mistake = check_wrap("a\nb'c").error().text;
  CHECK(mistake.starts_with("'a' has a quote"));
  CHECK(mistake.find('\n') == mistake.npos);
  CHECK(mistake.find("script") != mistake.npos);
}

TEST_CASE("a failure of the command is reported with its cause") {
  CHECK(wrap_failure("numactl -N 0", 127).starts_with("--wrap: 'numactl -N 0' was not found"));
  CHECK(wrap_failure("./x", 126).starts_with("--wrap: './x' cannot be run"));
}

TEST_CASE("the watchdog gets its signal, wherever it is below the command") {
  CHECK(end_watchdog_script(77, false) == "kill -CONT 77; kill -40 77");
  const std::string search = end_watchdog_script(77, true);
  CHECK(search.ends_with("k 77"));
  CHECK(search.find_first_of("'\\!\n") == search.npos);
}

}  // namespace
}  // namespace elasticrun::launcher::executors
