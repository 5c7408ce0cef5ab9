// Files of a save, in folders that others may write to and on file systems with limits.
#include "save/file.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "save/folder.hpp"

namespace elasticrun::save {
namespace {

namespace fs = std::filesystem;

struct OpenFolder {
  std::string path;
  OpenFolder() {
    char pattern[] = "/tmp/elasticrun-test-XXXXXX";
    path = ::mkdtemp(pattern);
  }
  ~OpenFolder() { fs::remove_all(path); }
  OpenFolder(const OpenFolder&) = delete;

  // A file beside the folder that nothing may write to.
  std::string victim() const {
    const std::string file = path + "/victim";
    std::ofstream(file) << "precious";
    return file;
  }
};

std::string whole_text(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Files of this process grow to that size at most while this lives.
class SizeLimit {
 public:
  explicit SizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  SizeLimit(const SizeLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("a file replaces a link that stands in its place, and leaves what it leads to alone") {
  const OpenFolder shared;
  const std::string victim = shared.victim();
  fs::create_symlink(victim, shared.path + "/part-0");
  fs::create_hard_link(victim, shared.path + "/part-1");
  for (const char* const name : {"part-0", "part-1"}) {
    REQUIRE(write_file(shared.path, name, "state").has_value());
    CHECK(whole_text(shared.path + "/" + name) == "state");
    CHECK_FALSE(fs::is_symlink(shared.path + "/" + name));
  }
  CHECK(whole_text(victim) == "precious");
}

TEST_CASE("a lock that is a link is refused, and what it leads to is left alone") {
  for (const bool symbolic : {true, false}) {
    const OpenFolder shared;
    const std::string victim = shared.victim(), folder = shared.path + "/saves";
    fs::create_directory(folder);
    if (symbolic)
      fs::create_symlink(victim, folder + "/lock");
    else
      fs::create_hard_link(victim, folder + "/lock");
    const auto opened = Folder::open(folder, "job");
    REQUIRE_FALSE(opened.has_value());
    CHECK(opened.error().text.find("/lock") != std::string::npos);
    CHECK(whole_text(victim) == "precious");
  }
}

TEST_CASE("a file beyond the limit of sizes is an error, and no signal ends the program") {
  const OpenFolder shared;
  const SizeLimit limit(4096);
  const auto written = write_file(shared.path, "part-0", std::string(8192, 'x'));
  REQUIRE_FALSE(written.has_value());
  CHECK(written.error().number == EFBIG);
  sigset_t pending;
  ::sigpending(&pending);
  CHECK(::sigismember(&pending, SIGXFSZ) == 0);
}

}  // namespace elasticrun::save
