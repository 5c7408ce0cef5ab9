// Private directories on a real disk: where they are made, and which ones are removed.
#include "launcher/agent/workers/private_directory.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <vector>

namespace elasticrun::launcher::agent::workers {
namespace {

namespace fs = std::filesystem;

// A TMPDIR for the tests; restores the previous value at the end.
struct Place {
  Place() {
    if (const char* set = std::getenv("TMPDIR")) before = set;
    std::string name = fs::temp_directory_path() / "place-XXXXXX";
    REQUIRE(::mkdtemp(name.data()));
    path = name;
    ::setenv("TMPDIR", path.c_str(), 1);
  }
  ~Place() {
    if (before)
      ::setenv("TMPDIR", before->c_str(), 1);
    else
      ::unsetenv("TMPDIR");
    fs::remove_all(path);
  }
  std::optional<std::string> before;
  fs::path path;
};

// Makes the file look as if it were years old.
void age(const fs::path& path) {
  const timespec long_ago[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), long_ago, AT_SYMLINK_NOFOLLOW) == 0);
}

// Leaves a socket to which no process listens any more.
void leave_socket(const fs::path& directory) {
  const auto fd = net::listen_unix_socket(directory / "agent.sock");
  REQUIRE(fd.has_value());
  const net::Fd closed(*fd);
}

TEST_CASE("the directory is made in TMPDIR, for this user only, and locked") {
  const Place place;
  ::setenv("XDG_RUNTIME_DIR", place.path.parent_path().c_str(), 1);
  const PrivateDirectory directory = make_private_directory().value();
  ::unsetenv("XDG_RUNTIME_DIR");
  CHECK(fs::path(directory.path).parent_path() == place.path);
  CHECK((fs::status(directory.path).permissions() & fs::perms::all) == fs::perms::owner_all);
  CHECK(directory.lock.get() >= 0);
  CHECK(lock_directory(directory.path).get() < 0);
}

TEST_CASE("/tmp is used when TMPDIR cannot be") {
  const Place place;
  for (const std::string& bad : {place.path.string() + std::string(70, 'x'), std::string("here"),
                                 std::string("/no/such/place")}) {
    ::setenv("TMPDIR", bad.c_str(), 1);
    const PrivateDirectory directory = make_private_directory().value();
    CHECK(directory.path.starts_with("/tmp/elasticrun-"));
    remove_directory(directory.path);
  }
}

TEST_CASE("directories of dead agents are removed, those of living agents are kept") {
  const Place place;
  const auto make = [&] { return make_private_directory().value(); };
  PrivateDirectory dead = make();
  dead.lock = net::Fd();
  leave_socket(dead.path);
  const PrivateDirectory locked = make();  // its socket is just being replaced
  leave_socket(locked.path);
  PrivateDirectory unlocked = make();  // on a file system without locks
  unlocked.lock = net::Fd();
  const auto listening = net::listen_unix_socket(unlocked.path + "/agent.sock");
  const net::Fd listener(*listening);
  PrivateDirectory early = make();  // about to listen
  early.lock = net::Fd();
  PrivateDirectory young = make();
  young.lock = net::Fd();
  leave_socket(young.path);
  // From another host that shares the file system: this host cannot tell whether its agent lives.
  const std::string letters = dead.path.substr(dead.path.rfind('-') + 1);
  const fs::path foreign = place.path / ("elasticrun-nowhere-" + letters);
  fs::create_directory(foreign);
  leave_socket(foreign);
  for (const fs::path& path : {fs::path(dead.path), fs::path(locked.path), fs::path(unlocked.path),
                               fs::path(early.path), foreign})
    age(path);

  const PrivateDirectory next = make();
  CHECK(!fs::exists(dead.path));
  for (const fs::path& path : {fs::path(locked.path), fs::path(unlocked.path), fs::path(early.path),
                               fs::path(young.path), foreign})
    CHECK_MESSAGE(fs::exists(path), path);
}

}  // namespace
}  // namespace elasticrun::launcher::agent::workers
