// The pages of elasticctl and of the policies name what the code has, none missing and none made
// up.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "autoscaler/autoscaler.hpp"
#include "cli/ctl_options.hpp"

using namespace elasticrun;

namespace {

using Names = std::set<std::string>;

std::string page(const std::string& name) {
  std::ifstream file(std::string(MANUAL) + "/" + name);
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

Names found(const std::string& text, const std::string& pattern) {
  Names names;
  const std::regex regex(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at)
    names.insert((*at)[1]);
  return names;
}

}  // namespace

TEST_CASE("every policy has its paragraph") {
  const auto known = autoscaler::Autoscaler::policies();
  CHECK(found(page("elasticrun-policies.7"), "\n\\.It Cm ([a-z-]+)") ==
        Names(known.begin(), known.end()));
}

TEST_CASE("every flag of elasticctl simulate is described") {
  const char* arguments[] = {"elasticctl", "simulate", "--help"};
  const auto help = std::get<std::string>(cli::parse_ctl(3, arguments).value());
  Names flags = found(help, "\n  (?:-h,)?--([a-z-]+)");
  flags.erase("help");
  CHECK(flags.size() > 10);
  CHECK(found(page("elasticctl.1"), "\n\\.It Fl -([a-z-]+)") == flags);
}
