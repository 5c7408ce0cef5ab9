// An agent that was copied to a host reports whether its file matches the hash in its name.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "launcher/bundle/content_hash.hpp"
#include "launcher/executors/hook_process.hpp"

namespace elasticrun::launcher::agent {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

struct Copy {
  explicit Copy(const std::string& text, const std::string& name) {
    std::string folder = fs::temp_directory_path() / "copy-XXXXXX";
    REQUIRE(::mkdtemp(folder.data()));
    path = fs::path(folder) / name;
    std::ofstream(path, std::ios::binary) << text;
    fs::permissions(path, fs::perms::owner_all);
  }
  ~Copy() { fs::remove_all(path.parent_path()); }
  // "ready" or "damaged", as printed for the launcher that starts it by ssh.
  std::string answer() const {
    const executors::HookAnswer heard = executors::run_hook(
        {fmt::format("{} --ready mark </dev/null; :", path.string()), 60s, "time"}, {});
    REQUIRE(heard.output.has_value());
    const std::string& printed = *heard.output;
    REQUIRE_MESSAGE(printed.starts_with("\nmark "), printed);
    return printed.substr(6, printed.find(' ', 6) - 6);
  }
  fs::path path;
};

TEST_CASE("every byte of the agent is checked if its name contains a hash") {
  std::ifstream in(AGENT, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  bundle::ContentHash hash;
  hash.add(whole);
  const std::string name = "agent-" + hash.text();
  std::string last = whole;
  last.back() ^= 1;
  CHECK(Copy(whole, name).answer() == "ready");
  CHECK(Copy(last, name).answer() == "damaged");
  CHECK(Copy(whole + "more", name).answer() == "damaged");
  CHECK(Copy(last, "agent-of-mine").answer() == "ready");
  CHECK(Copy(last, "elasticrun-agent").answer() == "ready");
}

}  // namespace
}  // namespace elasticrun::launcher::agent
