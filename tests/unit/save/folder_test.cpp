// The folder of --save, on a real file system.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "save/file.hpp"
#include "save/folder.hpp"
#include "save/manifest.hpp"
#include "save/names.hpp"
#include "wire/codec.hpp"

namespace elasticrun::save {
namespace {

namespace fs = std::filesystem;

struct Scratch {
  Scratch() {
    std::string name = (fs::temp_directory_path() / "er-save-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name + "/state";
  }
  ~Scratch() { fs::remove_all(fs::path(path).parent_path()); }
  std::string path;
};

// The files of a save as the members write them. Its contents list one array of `listed` bytes.
wire::saved::Manifest write_files(const std::string& draft, std::int64_t step,
                                  std::optional<std::uint64_t> listed = {}) {
  fs::create_directories(draft);
  const std::string part = fmt::format("part-0 of step {}", step);
  const wire::saved::Contents contents{
      .arrays = {{.kind = "state", .name = "weights", .bytes = listed.value_or(part.size())}}};
  wire::saved::Manifest manifest{.version = format_version, .step = step};
  for (const auto& [name, text] :
       {std::pair(contents_name, wire::encode(contents)), {"part-0", part}}) {
    auto file = write_file(draft, name, text);
    REQUIRE(file.has_value());
    manifest.files.push_back(*file);
  }
  return manifest;
}

// Writes a save as the members and the controller do.
Result<std::string> write_save(const std::string& folder, std::int64_t number, std::int64_t step,
                               const std::string& before = "") {
  return Folder::seal(folder, number, write_files(draft_of(folder, number), step), before);
}

std::int64_t newest_step(const std::string& folder) {
  const auto opened = Folder::open(folder, "j");
  REQUIRE_MESSAGE(opened.has_value(), opened.error().text);
  const auto& saves = opened->inventory().saves;
  return saves.empty() ? -1 : saves.front().manifest.step;
}

void append(const std::string& file, const char* text) {
  std::ofstream(file, std::ios::app) << text;
}

TEST_CASE("the newest two whole saves are kept, and the newest one is found") {
  Scratch scratch;
  CHECK(newest_step(scratch.path) == -1);
  for (int number = 1; number <= 3; ++number) {
    const auto whole = write_save(scratch.path, number, 10 * number);
    REQUIRE(whole.has_value());
    CHECK(*whole == whole_of(scratch.path, number));
    CHECK(newest_step(scratch.path) == 10 * number);
  }
  CHECK_FALSE(fs::exists(whole_of(scratch.path, 1)));
  CHECK(fs::exists(whole_of(scratch.path, 2)));
  const auto opened = Folder::open(scratch.path, "j");
  CHECK(opened->inventory().next_number == 4);
}

TEST_CASE("a save is not whole before its rename, and what is left of it is removed") {
  Scratch scratch;
  REQUIRE(write_save(scratch.path, 1, 10).has_value());
  const std::string draft = draft_of(scratch.path, 2);
  fs::create_directories(draft);
  append(draft + "/part-0", "half");
  CHECK(newest_step(scratch.path) == 10);
  CHECK_FALSE(fs::exists(draft));
  fs::create_directories(draft);
  Folder::discard(scratch.path, 2);
  CHECK_FALSE(fs::exists(draft));
}

TEST_CASE("what killed processes have left of their files is removed") {
  Scratch scratch;
  for (const char* const name : {"/.probe-8", "/.finished"}) append(scratch.path + name, "");
  CHECK(Folder::open(scratch.path, "a").has_value());
  CHECK(std::ranges::distance(fs::directory_iterator(scratch.path)) == 1);  // the lock
}

TEST_CASE("a save with a missing, torn or damaged file is refused by name") {
  struct Case {
    const char* what;
    std::function<void(const std::string& save)> harm;
    bool at_once;  // seen without reading the parts
  };
  const Case cases[] = {
      {"no manifest", [](const std::string& save) { fs::remove(save + "/manifest"); }, true},
      {"torn manifest", [](const std::string& save) { fs::resize_file(save + "/manifest", 40); },
       true},
      {"missing part", [](const std::string& save) { fs::remove(save + "/part-0"); }, true},
      {"torn part", [](const std::string& save) { fs::resize_file(save + "/part-0", 4); }, true},
      {"damaged part",
       [](const std::string& save) {
         std::fstream file(save + "/part-0");
         file.put('X');
       },
       false},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    Scratch scratch;
    REQUIRE(write_save(scratch.path, 1, 10).has_value());
    REQUIRE(write_save(scratch.path, 2, 20).has_value());
    const std::string save = whole_of(scratch.path, 2);
    c.harm(save);
    const auto opened = Folder::open(scratch.path, "j");
    REQUIRE(opened.has_value());
    CHECK(opened->inventory().refused.size() == (c.at_once ? 1 : 0));
    if (c.at_once) {
      CHECK(opened->inventory().refused[0].find(save) != std::string::npos);
      CHECK(opened->inventory().saves.front().manifest.step == 10);
      continue;
    }
    const auto text = read_text(save, opened->inventory().saves.front().manifest.files[1]);
    REQUIRE_FALSE(text.has_value());
    CHECK(text.error().text.find("part-0 is damaged") != std::string::npos);
  }
}

TEST_CASE("the newest save that can be read stays beside a new one") {
  Scratch scratch;
  for (int number = 1; number <= 2; ++number)
    REQUIRE(write_save(scratch.path, number, 10 * number).has_value());
  const std::string readable = whole_of(scratch.path, 1), damaged = whole_of(scratch.path, 2);
  const auto third = write_save(scratch.path, 3, 30, readable);
  REQUIRE(third.has_value());
  CHECK(fs::exists(readable));
  REQUIRE(write_save(scratch.path, 4, 40, *third).has_value());
  CHECK(fs::exists(*third));
  CHECK_FALSE(fs::exists(readable));
  CHECK_FALSE(fs::exists(damaged));
}

TEST_CASE("a save whose files are not all there, or not as told, is not made whole") {
  Scratch scratch;
  const std::string draft = draft_of(scratch.path, 1);
  fs::create_directories(draft);
  const auto file = write_file(draft, "part-0", "state");
  wire::saved::Manifest manifest{.files = {*file, {"part-1", 5, ""}}};
  CHECK_FALSE(Folder::seal(scratch.path, 1, manifest, "").has_value());
  manifest.files = {{"part-0", 6, ""}};
  CHECK_FALSE(Folder::seal(scratch.path, 1, manifest, "").has_value());
  manifest.files = {{"../part-0", 5, ""}};
  CHECK_FALSE(Folder::seal(scratch.path, 1, manifest, "").has_value());
  CHECK(fs::exists(draft));
  CHECK_FALSE(fs::exists(whole_of(scratch.path, 1)));
}

TEST_CASE("a save that cannot be read back is not made whole") {
  Scratch scratch;
  const std::string draft = draft_of(scratch.path, 1);
  const auto refused = [&](const wire::saved::Manifest& manifest) {
    const auto sealed = Folder::seal(scratch.path, 1, manifest, "");
    CHECK_FALSE(fs::exists(whole_of(scratch.path, 1)));
    return sealed ? std::string() : sealed.error().text;
  };
  CHECK(refused(write_files(draft, 10, 99)) ==
        draft +
            ": its parts have 17 bytes where its arrays have 99; do the state sources of all "
            "workers list the same arrays?");
  wire::saved::Manifest manifest = write_files(draft, 10);
  manifest.files[0] = *write_file(draft, contents_name, "no contents");
  CHECK(refused(manifest).find("is not JSON") != std::string::npos);
  manifest.files.erase(manifest.files.begin());
  CHECK(refused(manifest).find("names no contents") != std::string::npos);
  CHECK(Folder::seal(scratch.path, 1, write_files(draft, 10), "").has_value());
}

TEST_CASE("two jobs do not use one folder at a time, and the second one is told who does") {
  Scratch scratch;
  const auto first = Folder::open(scratch.path, "first");
  REQUIRE(first.has_value());
  const auto second = Folder::open(scratch.path, "second");
  REQUIRE_FALSE(second.has_value());
  CHECK(second.error().text.find("job first") != std::string::npos);
}

TEST_CASE("a job that has finished leaves saves that no job goes on from") {
  Scratch scratch;
  REQUIRE(write_save(scratch.path, 1, 10).has_value());
  REQUIRE(Folder::finish(scratch.path).has_value());
  {
    const auto opened = Folder::open(scratch.path, "j");
    CHECK(opened->inventory().finished);
    CHECK(opened->inventory().saves.empty());
    CHECK(opened->inventory().next_number == 2);
  }
  REQUIRE(write_save(scratch.path, 2, 5).has_value());  // the next job is at an earlier step
  CHECK(newest_step(scratch.path) == 5);
  CHECK_FALSE(Folder::open(scratch.path, "j")->inventory().finished);
}

TEST_CASE("a worker sees whether a folder is the one of its job") {
  Scratch scratch, other;
  const auto held = Folder::open(scratch.path, "mine");
  REQUIRE(held.has_value());
  fs::create_directories(other.path);
  CHECK(probe(scratch.path, "mine", 4).has_value());
  CHECK_FALSE(probe(scratch.path, "min", 4).has_value());
  CHECK_FALSE(probe(other.path, "mine", 4).has_value());
  CHECK_FALSE(probe(scratch.path + "/none", "mine", 4).has_value());
  CHECK(std::distance(fs::directory_iterator(scratch.path), {}) == 1);  // only the lock
}

}  // namespace
}  // namespace elasticrun::save
