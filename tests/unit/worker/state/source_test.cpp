// What a state source lists reaches newcomers and saves like registered state.
#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <numeric>

#include "save/file.hpp"
#include "save/manifest.hpp"
#include "tests/unit/worker/ranks.hpp"
#include "wire/codec.hpp"
#include "wire/limits.hpp"
#include "worker/state/saved_state.hpp"
#include "worker/state/state_copy.hpp"
#include "worker/state/state_transfer.hpp"

using namespace elasticrun;
using namespace elasticrun::worker::collective;
using namespace elasticrun::worker::state;
using namespace elasticrun::worker::testing;

namespace {

// A program with registered weights, and an optimizer whose arrays come later.
struct Program {
  explicit Program(int seed) : weights(1000) {
    std::iota(weights.begin(), weights.end(), seed);
    REQUIRE(table.add_state("weights", weights.data(), weights.size() * sizeof(int)).has_value());
    table.seal();
    table.use_source(Source{.list = [this] { return list(); },
                            .make_room = [this](const Layout& wanted) { return make_room(wanted); },
                            .take_objects =
                                [this](std::string_view text) {
                                  objects = text;
                                  return Result<void>();
                                }});
  }
  Program(const Program&) = delete;
  void step(int seed) {
    for (const auto& [name, size] : {std::pair("momentum", 300'001), {"none", 0}, {"count", 3}}) {
      late[name].resize(static_cast<std::size_t>(size));
      std::iota(late[name].begin(), late[name].end(), static_cast<unsigned char>(seed));
    }
    objects = std::string("seed ") + std::to_string(seed) + std::string(1, '\0') + "\xff";
  }
  Result<Listing> list() {
    ++looks;
    Listing listing{.arrays = {}, .objects = objects};
    for (auto& [name, bytes] : late) listing.arrays.push_back({name, bytes.data(), bytes.size()});
    return listing;
  }
  Result<void> make_room(const Layout& wanted) {
    if (!trouble.empty()) return Error{trouble};
    if (lazy) return {};
    if (!keeps)
      std::erase_if(late, [&](const auto& entry) {
        return std::ranges::count(wanted, entry.first, &Registration::name) == 0;
      });
    for (const Registration& one : wanted) late[one.name].resize(one.bytes);
    return {};
  }
  bool operator==(const Program& other) const {
    return weights == other.weights && late == other.late && objects == other.objects;
  }

  std::vector<int> weights;
  std::map<std::string, std::vector<unsigned char>> late;
  std::string objects, trouble;
  bool lazy = false, keeps = false;
  int looks = 0;
  StateTable table;
};

const std::vector<bool> holds{false, true, false};

}  // namespace

TEST_CASE("arrays of a state source and its objects reach newcomers, and members that are behind") {
  for (const bool keep : {false, true})
    run_ranks(3, [&](Group& group) {
      Program reference(7);
      reference.step(7);
      Program program(group.rank() == 1 ? 7 : 90);
      if (group.rank() == 1) program.step(7);
      if (group.rank() == 0) program.step(50);  // it has the arrays already
      StateTransfer transfer(group, holds, program.table);
      const auto before = program.weights;
      const TransferResult result = transfer.exchange("step 17", keep);
      CHECK(result.bytes > program.table.bytes());
      CHECK(program.table.bytes() == 4000 + 300'001 + 3);
      if (keep) CHECK(program.weights == before);
      const Carried carried = transfer.commit();
      if (group.rank() == 1) return;
      CHECK(carried.progress == "step 17");
      program.table.take_objects(carried.objects);
      CHECK(program == reference);
    });
}

TEST_CASE("as many objects as are taken, and very many arrays, reach newcomers and saves") {
  const auto fill = [](Program& program) {
    program.objects.assign(Source::objects_bytes_max, '\xfe');
    for (int i = 0; i < 100'000; ++i)
      program.late["layer " + std::to_string(i) + ".exp_avg"] = {static_cast<unsigned char>(i)};
  };
  Program reference(7);
  fill(reference);
  reference.table.look();
  const Result<std::string> text = contents_of(reference.table, "step 17");
  REQUIRE_MESSAGE(text.has_value(), text.error().text);
  const auto contents = wire::decode<wire::saved::Contents>(*text);
  REQUIRE_MESSAGE(contents.has_value(), contents.error().text);
  const auto carried = carried_of(*contents);
  REQUIRE(carried.has_value());
  CHECK(carried->objects == reference.objects);
  CHECK(carried->late == reference.table.late());
  run_ranks(2, [&](Group& group) {
    Program program(group.rank() == 1 ? 7 : 90);
    if (group.rank() == 1) fill(program);
    StateTransfer transfer(group, {false, true}, program.table);
    transfer.exchange("step 17", false);
    const Carried received = transfer.commit();
    if (group.rank() == 1) return;
    program.table.take_objects(received.objects);
    CHECK(program == reference);
  });
}

TEST_CASE("a source that lists more than readers take is an error before anything is sent") {
  const auto fill = [](Program& program) {
    program.objects.assign(wire::saved_text_bytes_max / 2, 'o');
  };
  Program writer(7);
  fill(writer);
  writer.table.look();
  const auto text = contents_of(writer.table, "step 17");
  REQUIRE_FALSE(text.has_value());
  CHECK(text.error().text.find("at most 268435456 are taken") != std::string::npos);
  std::atomic<int> mismatches{0};
  run_ranks(2, [&](Group& group) {
    Program program(7);
    if (group.rank() == 1) fill(program);
    StateTransfer transfer(group, {false, true}, program.table);
    try {
      transfer.exchange("step 17", false);
    } catch (const StateMismatch&) {
      ++mismatches;
    }
  });
  CHECK(mismatches == 2);
}

TEST_CASE("nobody looks at a source when all hold the state") {
  run_ranks(2, [&](Group& group) {
    Program program(7);
    StateTransfer transfer(group, {true, true}, program.table);
    transfer.exchange("step 17", true);
    CHECK(program.looks == 0);
  });
}

TEST_CASE("a worker that cannot make room is named, and the others are free to go on without it") {
  struct Case {
    std::function<void(Program&)> change;
    const char* says;
  };
  const Case cases[] = {
      {[](Program& p) { p.trouble = "no memory for it"; }, "no memory for it"},
      {[](Program& p) { p.lazy = true; },
       "the state source has not made room as asked: its array 0 is missing, and should be source "
       "'count' (3 bytes)"},
      {[](Program& p) {
         p.late["of its own"].resize(5);
         p.keeps = true;
       },
       "the state source has not made room as asked: its array 3 is source 'of its own' (5 bytes), "
       "and should be missing"},
      {[](Program& p) { p.table.use_source(std::nullopt); },
       "the state has 3 arrays of a state source, and this program has none; give all workers the "
       "same one, before they train"},
  };
  for (const Case& c : cases) {
    std::atomic<int> blamed{0}, failed{0};
    run_ranks(3, [&](Group& group) {
      Program program(group.rank());
      if (group.rank() == 1) program.step(7);
      if (group.rank() == 2) c.change(program);
      StateTransfer transfer(group, holds, program.table);
      try {
        transfer.exchange("step 17", false);
      } catch (const SourceFailed& error) {
        CHECK(std::string(error.what()) == c.says);
        CHECK(group.rank() == 2);
        ++failed;
      } catch (const GroupBroken& error) {
        REQUIRE(error.troubles.size() == 1);
        CHECK(error.troubles.front().rank == 2);
        ++blamed;
      }
    });
    CHECK(failed == 1);
    CHECK(blamed == 2);
  }
}

TEST_CASE("holders whose sources list other arrays do not agree") {
  std::atomic<int> mismatches{0};
  run_ranks(3, [&](Group& group) {
    Program program(7);
    program.step(7);
    if (group.rank() == 2) program.late["momentum"].resize(300'000);
    StateTransfer transfer(group, {false, true, true}, program.table);
    try {
      transfer.exchange("step 17", false);
    } catch (const StateMismatch&) {
      ++mismatches;
    }
  });
  CHECK(mismatches == 3);
}

TEST_CASE("a save has what a source lists, and a program makes room for it again") {
  std::string folder = (std::filesystem::temp_directory_path() / "er-source-XXXXXX").string();
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  Program program(7);
  program.step(7);
  program.table.look();
  wire::saved::Manifest manifest{.version = save::format_version,
                                 .state_bytes = program.table.registered_bytes(),
                                 .state_layout = program.table.layout_hash()};
  manifest.files.push_back(
      *save::write_file(folder, save::contents_name, *contents_of(program.table, "step 17")));
  const StateImage image(program.table.segments());
  for (int rank = 0; rank < 2; ++rank)
    manifest.files.push_back(
        *write_part(folder, rank, image, 0, share_of(program.table.bytes(), rank, 2), nullptr));
  REQUIRE(save::write_file(folder, save::manifest_name, save::encode(manifest)).has_value());

  Program resumed(0);
  const auto carried = restore(folder, resumed.table, nullptr);
  REQUIRE_MESSAGE(carried.has_value(), carried.error().text);
  CHECK(carried->progress == "step 17");
  resumed.table.take_objects(carried->objects);
  CHECK(resumed == program);

  Program refuses(0);
  refuses.trouble = "no";
  CHECK_THROWS_AS((void)restore(folder, refuses.table, nullptr), SourceFailed);
  std::filesystem::remove_all(folder);
}

TEST_CASE("a copy follows what a source lists, and puts its objects back as well") {
  Program program(7);
  StateCopy copy(program.table);
  copy.take();
  program.step(7);
  copy.take();
  Program reference(7);
  reference.step(7);
  program.weights[3] = 0;
  program.late["momentum"][9] ^= 1;
  program.objects = "changed";
  CHECK(!copy.holds());
  copy.put_back();
  CHECK(copy.holds());
  CHECK(program == reference);
}

TEST_CASE("a step that is undone takes the arrays with it that it has made, dropped or replaced") {
  Program before(7);
  StateCopy of_none(before.table);
  of_none.take();
  before.step(8);
  of_none.put_back();
  CHECK(before.late.empty());
  CHECK(of_none.holds());

  Program program(7), reference(7);
  program.step(7);
  reference.step(7);
  StateCopy copy(program.table);
  copy.take();
  program.late.erase("count");
  program.late["second"] = {1, 2, 3};
  const auto old = std::exchange(program.late["momentum"], std::vector<unsigned char>(300'001));
  copy.put_back();
  CHECK(program == reference);
  CHECK(copy.holds());
}

TEST_CASE("objects alone need a source as well") {
  StateTable table;
  int weight = 0;
  REQUIRE(table.add_state("weight", &weight, sizeof weight).has_value());
  table.seal();
  CHECK_THROWS_AS(table.take_objects("objects"), SourceFailed);
  table.take_objects("");
}
