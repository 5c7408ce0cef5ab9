// Bundles on a real disk: they are always complete, despite concurrent writers and wrong parts.
#include "launcher/bundle/bundle_cache.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

namespace elasticrun::launcher::bundle {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

struct File {
  std::string name;
  std::string bytes;
  bool executable = false;
};
const std::vector<File> files = {{"libx.so", "library"}, {"train", "#!/bin/sh\n", true}};

std::string hash_of(const std::vector<File>& all) {
  BundleDigest hash;
  for (const File& file : all) {
    hash.add(file.bytes);
    hash.end_file(file.name, file.executable);
  }
  return hash.text();
}

std::int64_t bytes_of(const std::vector<File>& all) {
  std::int64_t bytes = 0;
  for (const File& file : all) bytes += static_cast<std::int64_t>(file.bytes.size());
  return bytes;
}

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Place {
  Place() {
    std::string name = fs::temp_directory_path() / "place-XXXXXX";
    REQUIRE(::mkdtemp(name.data()));
    path = name;
  }
  ~Place() { fs::remove_all(path); }
  std::unique_ptr<UnfinishedBundle> begin(const std::string& mark = "one",
                                          const std::string& hash = hash_of(files),
                                          std::int64_t bytes = bytes_of(files)) const {
    auto begun = UnfinishedBundle::begin(path, hash, bytes, "/tmp/elasticrun-" + mark);
    REQUIRE_MESSAGE(begun.has_value(), begun.error().text);
    return std::move(*begun);
  }
  // Takes the parts of these files, one byte each, the last one empty; returns the error, or "".
  static std::string fill(UnfinishedBundle& bundle, const std::vector<File>& all = files) {
    for (const File& file : all) {
      for (std::size_t i = 0; i <= file.bytes.size(); ++i) {
        const wire::agent::BundlePart part{
            .file = file.name, .executable = file.executable, .bytes = {file.bytes.substr(i, 1)}};
        if (const auto taken = bundle.take(part); !taken) return taken.error().text;
      }
    }
    const auto finished = bundle.finish();
    return finished ? "" : finished.error().text;
  }
  Names there() const {
    Names names;
    for (const auto& entry : fs::directory_iterator(path)) names.push_back(entry.path().filename());
    return names;
  }
  std::optional<std::string> find() const {
    return find_bundle({"/no/such/place", path}, hash_of(files), bytes_of(files));
  }
  fs::path path;
};

TEST_CASE("a complete bundle has its final name, and is found") {
  const Place place;
  CHECK_FALSE(place.find());
  auto bundle = place.begin();
  CHECK_FALSE(place.find());
  CHECK(Place::fill(*bundle) == "");
  const std::string folder = bundle->stored_in();
  bundle.reset();
  CHECK(place.there() == Names{"bundle-" + hash_of(files)});
  CHECK(place.find() == folder);
  CHECK(text_of(folder + "/train") == "#!/bin/sh\n");
  struct stat about {};
  CHECK(::stat((folder + "/train").c_str(), &about) == 0);
  CHECK((about.st_mode & 07777) == 0700);
  CHECK(::stat((folder + "/libx.so").c_str(), &about) == 0);
  CHECK((about.st_mode & 07777) == 0600);
  CHECK(has_libraries(folder));
  fs::remove(folder + "/libx.so");
  CHECK_FALSE(has_libraries(folder));
  CHECK_FALSE(place.find());  // bytes are missing
}

TEST_CASE("a partial bundle leaves nothing") {
  const Place place;
  auto bundle = place.begin();
  CHECK(bundle->take({.file = "train", .executable = true, .bytes = "#!/"}).has_value());
  CHECK(place.there() == Names{"bundle-" + hash_of(files) + ".one"});
  bundle.reset();
  CHECK(place.there() == Names{});
}

TEST_CASE("content that was not announced is not kept") {
  const std::vector<File> changed = {{"libx.so", "library"}, {"train", "#!/bin/ls\n", true}};
  const std::vector<File> kind = {{"libx.so", "library"}, {"train", "#!/bin/sh\n", false}};
  const std::vector<File> shorter = {{"libx.so", "library"}};
  const std::vector<File> longer = {{"libx.so", "library"}, {"train", "#!/bin/sh\n\n", true}};
  for (const auto& came : {changed, kind, shorter}) {
    const Place place;
    CHECK(Place::fill(*place.begin(), came).find("is not what was announced") != std::string::npos);
    CHECK(place.there() == Names{});
  }
  const Place place;
  CHECK(Place::fill(*place.begin(), longer).find("more bytes") != std::string::npos);
  CHECK(place.there() == Names{});
}

TEST_CASE("file names from the network stay in the folder") {
  for (const std::string name :
       {"", ".", "..", "../train", "/tmp/train", "a/../../train", "a//b", "libx.so/a"}) {
    const Place place;
    const auto bundle = place.begin();
    CAPTURE(name);
    CHECK(bundle->take({.file = "libx.so", .bytes = "a"}).has_value());
    CHECK_FALSE(bundle->take({.file = name, .bytes = "b"}).has_value());
    CHECK(place.there().size() == 1);
  }
}

TEST_CASE("a bundle with folders is found, whatever Python compiles in them") {
  const std::vector<File> all = {{"train.py", "import a.b"}, {"a/b.py", ""}, {"a/data/c", "x"}};
  const Place place;
  auto bundle = place.begin("one", hash_of(all), bytes_of(all));
  CHECK(Place::fill(*bundle, all) == "");
  const fs::path folder = bundle->stored_in();
  const auto find = [&] { return find_bundle({place.path}, hash_of(all), bytes_of(all)); };
  CHECK(find() == folder.string());
  CHECK(text_of(folder / "a/data/c") == "x");
  for (const char* where : {"__pycache__", "a/__pycache__"}) {
    fs::create_directory(folder / where);
    std::ofstream(folder / where / "b.cpython-311.pyc") << "compiled";
  }
  CHECK(find() == folder.string());
  CHECK(has_size(folder, bytes_of(all)));
  fs::rename(folder / "a/b.py", folder / "b.py");  // with the same bytes, in another folder
  CHECK_FALSE(find());
  fs::rename(folder / "b.py", folder / "a/b.py");
  fs::rename(folder / "a", place.path / "a");
  fs::create_directory_symlink("../a", folder / "a");
  CHECK_FALSE(find());
}

TEST_CASE("a file must not come twice") {
  const Place place;
  const auto bundle = place.begin();
  CHECK(bundle->take({.file = "train", .bytes = "a"}).has_value());
  CHECK(bundle->take({.file = "libx.so", .bytes = "b"}).has_value());
  CHECK_FALSE(bundle->take({.file = "train", .bytes = "c"}).has_value());
}

TEST_CASE("of two writers the slower one finds the bundle of the first") {
  const Place place;
  auto one = place.begin("one"), two = place.begin("two");
  CHECK(Place::fill(*one) == "");
  struct stat first {
  }, second{};
  CHECK(::stat(one->stored_in().c_str(), &first) == 0);
  CHECK(Place::fill(*two) == "");
  CHECK(::stat(two->stored_in().c_str(), &second) == 0);
  CHECK(first.st_ino == second.st_ino);
  one.reset();
  two.reset();
  CHECK(place.there().size() == 1);
}

TEST_CASE("a bundle that was damaged by a loss of power is replaced") {
  const Place place;
  const fs::path folder = place.path / ("bundle-" + hash_of(files));
  fs::create_directory(folder);
  std::ofstream(folder / "train");  // without its bytes
  CHECK_FALSE(place.find());
  auto bundle = place.begin();
  CHECK(Place::fill(*bundle) == "");
  bundle.reset();
  CHECK(place.there().size() == 1);
  CHECK(place.find());
}

TEST_CASE("a bundle whose content does not match its name is not found, and is replaced") {
  const auto change = [](const fs::path& file, const std::string& text) {
    std::ofstream(file) << text;
  };
  const std::function<void(const fs::path&)> changes[] = {
      [&](const fs::path& folder) { change(folder / "train", "#!/bin/ls\n"); },
      [&](const fs::path& folder) { change(folder / "libx.so", std::string(7, '\0')); },
      [](const fs::path& folder) { fs::permissions(folder / "train", fs::perms::owner_read); },
      [](const fs::path& folder) { fs::rename(folder / "libx.so", folder / "liby.so"); },
      [](const fs::path& folder) { std::ofstream(folder / "more"); },
      [](const fs::path& folder) {
        fs::rename(folder / "libx.so", folder.parent_path() / "libx.so");
        fs::create_symlink("../libx.so", folder / "libx.so");
      }};
  for (const auto& damage : changes) {
    const Place place;
    auto bundle = place.begin();
    CHECK(Place::fill(*bundle) == "");
    const std::string folder = bundle->stored_in();
    CHECK(place.find() == folder);
    damage(folder);
    CHECK_FALSE(place.find());
    auto again = place.begin("two");
    CHECK(Place::fill(*again) == "");
    CHECK(place.find() == folder);
    CHECK(text_of(folder + "/train") == "#!/bin/sh\n");
  }
}

TEST_CASE("the first place that has room and is writable is used") {
  const Place place;
  CHECK(place_for_bundle({"/no/such/place", place.path}, 1000).value() == place.path.string());
  const auto none =
      place_for_bundle({"/no/such/place", place.path, "/proc"}, std::int64_t{1} << 60);
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().text.find("/no/such/place: No such file or directory, " + place.path.string() +
                               ": not enough room") != std::string::npos);
}

TEST_CASE("old bundles are removed, but not those in use nor the newest ones") {
  const Place place;
  const auto make = [&](const std::string& name, int hours) {
    const fs::path folder = place.path / name;
    fs::create_directory(folder);
    std::ofstream(folder / "train") << name;
    fs::last_write_time(folder, fs::last_write_time(folder) - std::chrono::hours(hours));
    return folder;
  };
  for (const int hours : {2, 3, 4, 5, 6}) make(fmt::format("bundle-{}", hours), hours);
  make("bundle-in-use", 0);
  make("bundle-dead.mark", 9);
  make("agent-x", 99);
  forget_old_bundles(make("bundle-new", 0));
  Names left = place.there();
  std::ranges::sort(left);
  CHECK(left ==
        Names{"agent-x", "bundle-2", "bundle-3", "bundle-4", "bundle-in-use", "bundle-new"});
}

TEST_CASE("a bundle that is used again counts as new") {
  const Place place;
  auto bundle = place.begin();
  CHECK(Place::fill(*bundle) == "");
  const fs::path folder = bundle->stored_in();
  const auto before = fs::last_write_time(folder) - std::chrono::hours(5);
  fs::last_write_time(folder, before);
  CHECK(place.find());
  CHECK(fs::last_write_time(folder) > before + std::chrono::hours(4));
}

TEST_CASE("a watchdog removes what its agent was writing, and nothing else") {
  const Place place;
  const std::string own = (place.path / "elasticrun-Ab12Cd").string();
  fs::create_directory(own);
  for (const char* name : {"bundle-1.Ab12Cd", "bundle-1.Other", "bundle-1"})
    fs::create_directory(fs::path(own) / name);
  remove_unfinished_bundles(own);
  CHECK_FALSE(fs::exists(own + "/bundle-1.Ab12Cd"));
  CHECK(fs::exists(own + "/bundle-1.Other"));
  CHECK(fs::exists(own + "/bundle-1"));
}

TEST_CASE("a bundle lies beside a copied agent, unless the last logout removes that place") {
  struct Case {
    const char* self;
    const char* runtime;
    Names places;
  };
  const Case cases[] = {
      {"/home/ann/.cache/elasticrun/agent-12", "", {"/home/ann/.cache/elasticrun", "/tmp/own"}},
      {"/home/ann/.cache/elasticrun/agent-12",
       "/run/user/7",
       {"/home/ann/.cache/elasticrun", "/tmp/own"}},
      {"/run/user/7/elasticrun/agent-12", "/run/user/7", {"/tmp/own", "/run/user/7/elasticrun"}},
      {"/run/user/77/elasticrun/agent-12", "/run/user/7", {"/run/user/77/elasticrun", "/tmp/own"}},
      {"/usr/bin/elasticrun-agent", "/run/user/7", {"/tmp/own"}},
      {"", "", {"/tmp/own"}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.self);
    CHECK(bundle_places("/tmp/own", c.self, c.runtime) == c.places);
  }
}

}  // namespace
}  // namespace elasticrun::launcher::bundle
