// The name and the system of an agent program that is to be copied.
#include "launcher/ssh/agent_image.hpp"

#include <doctest/doctest.h>

#include <array>
#include <utility>

namespace elasticrun::launcher::ssh {
namespace {

std::string program(char machine, char more = 0) {
  std::string bytes =
      "\x7f"
      "ELF" +
      std::string(60, '\0');
  bytes[18] = machine;
  bytes += more;
  return bytes;
}

TEST_CASE("the system is read from the ELF header") {
  const std::array<std::pair<int, const char*>, 4> cases = {{{62, "Linux x86_64"},
                                                             {183, "Linux aarch64"},
                                                             {243, "Linux riscv64"},
                                                             {21, "Linux ppc64le"}}};
  for (const auto& [number, system] : cases) {
    const auto image = agent_image(program(static_cast<char>(number)), "agent");
    REQUIRE(image.has_value());
    CHECK(image->system == system);
  }
}

TEST_CASE("the hash depends only on the content") {
  const auto one = agent_image(program(62, 'a'), "agent");
  const auto same = agent_image(program(62, 'a'), "other/path");
  const auto other = agent_image(program(62, 'b'), "agent");
  CHECK(one->hash.size() == 32);
  CHECK(one->hash == same->hash);
  CHECK(one->hash != other->hash);
}

TEST_CASE("a file that is no program is refused, and the error names it") {
  for (const std::string& bytes : {std::string(), std::string("#!/bin/sh\n"), program(99)}) {
    const auto image = agent_image(bytes, "/opt/agent");
    REQUIRE(!image);
    CHECK(image.error().text.starts_with("/opt/agent: "));
  }
}

}  // namespace
}  // namespace elasticrun::launcher::ssh
