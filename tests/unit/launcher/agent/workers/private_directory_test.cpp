// Private directories on a real disk: where they are made, which are removed and which are not.
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

// The TMPDIR of these tests, with the one of before put back at the end.
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

// As it is after some minutes.
void age(const fs::path& path) {
  const timespec long_ago[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), long_ago, AT_SYMLINK_NOFOLLOW) == 0);
}

// A socket that nobody listens to any more.
void leave_socket(const fs::path& directory) {
  const auto fd = net::listen_unix_socket(directory / "agent.sock");
  REQUIRE(fd.has_value());
  const net::Fd closed(*fd);
}

TEST_CASE("it is made in TMPDIR, for us alone, and held") {
  const Place place;
  ::setenv("XDG_RUNTIME_DIR", place.path.parent_path().c_str(), 1);
  const PrivateDirectory directory = make_private_directory();
  ::unsetenv("XDG_RUNTIME_DIR");
  CHECK(fs::path(directory.path).parent_path() == place.path);
  CHECK((fs::status(directory.path).permissions() & fs::perms::all) == fs::perms::owner_all);
  CHECK(directory.lock.get() >= 0);
  CHECK(lock_directory(directory.path).get() < 0);
}

TEST_CASE("a TMPDIR that cannot be used gives way to /tmp") {
  const Place place;
  for (const std::string& bad : {place.path.string() + std::string(70, 'x'), std::string("here"),
                                 std::string("/no/such/place")}) {
    ::setenv("TMPDIR", bad.c_str(), 1);
    const PrivateDirectory directory = make_private_directory();
    CHECK(directory.path.starts_with("/tmp/elasticrun-"));
    remove_directory(directory.path);
  }
}

TEST_CASE("what dead agents have left is removed, what lives is not") {
  const Place place;
  const auto make = [&] { return make_private_directory(); };
  PrivateDirectory dead = make();
  dead.lock = net::Fd();
  leave_socket(dead.path);
  const PrivateDirectory locked = make();  // its socket is being renewed
  leave_socket(locked.path);
  PrivateDirectory unlocked = make();  // of a file system without locks
  unlocked.lock = net::Fd();
  const auto listening = net::listen_unix_socket(unlocked.path + "/agent.sock");
  const net::Fd listener(*listening);
  PrivateDirectory early = make();  // listens in a moment
  early.lock = net::Fd();
  PrivateDirectory young = make();
  young.lock = net::Fd();
  leave_socket(young.path);
  // Of another host that shares the place: nobody here can tell whether it lives.
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
