// The state in the files of a save: written by a world of any size, read by one of any other.
#include "worker/state/saved_state.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <vector>

#include "save/file.hpp"
#include "save/manifest.hpp"

namespace elasticrun::worker::state {
namespace {

namespace fs = std::filesystem;

struct Scratch {
  Scratch() {
    std::string name = (fs::temp_directory_path() / "er-state-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Scratch() { fs::remove_all(path); }
  std::string path;
};

// A program with three arrays, in memory of its own.
struct Program {
  explicit Program(std::size_t count, double first) : weights(count), odd(4097), running(3) {
    std::iota(weights.begin(), weights.end(), first);
    std::fill(odd.begin(), odd.end(), static_cast<char>(first));
    std::fill(running.begin(), running.end(), first);
    REQUIRE(table.add_state("weights", weights.data(), count * sizeof(double)).has_value());
    REQUIRE(table.add_state("odd", odd.data(), odd.size()).has_value());
    REQUIRE(
        table.add_buffers("running", running.data(), collective::DataType::float64, 3).has_value());
    table.seal();
  }
  bool operator==(const Program& other) const {
    return weights == other.weights && odd == other.odd && running == other.running;
  }

  std::vector<double> weights;
  std::vector<char> odd;
  std::vector<double> running;
  StateTable table;
};

// Writes the save of a world of that size, all of whose members hold the state of `program`.
void write(const std::string& folder, const Program& program, int size) {
  wire::saved::Manifest manifest{.version = save::format_version,
                                 .state_bytes = program.table.bytes(),
                                 .state_layout = program.table.layout_hash()};
  const auto contents =
      save::write_file(folder, save::contents_name, *contents_of(program.table, "progress"));
  REQUIRE(contents.has_value());
  manifest.files.push_back(*contents);
  const StateImage image(program.table.segments());
  for (int rank = 0; rank < size; ++rank) {
    const auto part =
        write_part(folder, rank, image, 0, share_of(program.table.bytes(), rank, size), nullptr);
    REQUIRE(part.has_value());
    manifest.files.push_back(*part);
  }
  REQUIRE(save::write_file(folder, save::manifest_name, save::encode(manifest)).has_value());
}

TEST_CASE("shares follow each other without gaps, and none is much larger than the others") {
  for (const std::uint64_t bytes : {0ULL, 1ULL, 4095ULL, 1'000'003ULL, 3'000'000ULL, 1ULL << 40})
    for (const int size : {1, 2, 3, 8, 1000}) {
      std::uint64_t at = 0;
      for (int rank = 0; rank < size; ++rank) {
        const Share share = share_of(bytes, rank, size);
        REQUIRE(share.offset == at);
        at += share.bytes;
        const auto writers = std::min<std::uint64_t>(static_cast<std::uint64_t>(size),
                                                     std::max<std::uint64_t>(bytes >> 20, 1));
        CHECK(share.bytes <= bytes / writers + 2 * 4096);
      }
      CHECK(at == bytes);
    }
}

TEST_CASE("what worlds of any size write is read back to the last bit") {
  for (const int size : {1, 2, 3, 7})
    for (const std::size_t count : {1u, 1000u, 1'000'000u}) {
      CAPTURE(size);
      CAPTURE(count);
      const Scratch scratch;
      const Program writer(count, 5);
      Program reader(count, 0);
      write(scratch.path, writer, size);
      std::atomic<std::uint64_t> moved{0};
      const auto progress = restore(scratch.path, reader.table, &moved);
      REQUIRE_MESSAGE(progress.has_value(), progress.error().text);
      CHECK(progress->progress == "progress");
      CHECK(reader == writer);
      CHECK(moved == writer.table.bytes());
    }
}

TEST_CASE("a copy of one share is written as the share itself") {
  const Scratch scratch;
  const Program program(1'000'000, 5);
  const StateImage image(program.table.segments());
  const Share share = share_of(program.table.bytes(), 1, 3);
  const auto whole = write_part(scratch.path, 1, image, 0, share, nullptr);
  std::vector<std::byte> copy(share.bytes);
  image.copy_out(share.offset, share.bytes, copy.data());
  const std::vector<Segment> segments{{copy.data(), copy.size()}};
  const auto copied =
      write_part(scratch.path, 1, StateImage(segments), share.offset, share, nullptr);
  REQUIRE((whole.has_value() && copied.has_value()));
  CHECK(whole->hash == copied->hash);
}

TEST_CASE("a save that does not fit the program, or is damaged, is refused in words") {
  const Program writer(300'000, 5);
  const auto refused = [&](std::size_t count, const auto& harm) {
    const Scratch scratch;
    write(scratch.path, writer, 2);
    harm(scratch.path);
    Program reader(count, 0);
    const auto progress = restore(scratch.path, reader.table, nullptr);
    REQUIRE_FALSE(progress.has_value());
    return progress.error().text;
  };
  const auto nothing = [](const std::string&) {};
  CHECK(refused(300'001, nothing).find("another program") != std::string::npos);
  for (const char* name : {"contents", "part-0", "part-1"}) {
    CAPTURE(name);
    const auto flip = [&](const std::string& folder) {
      std::fstream file(folder + "/" + name);
      file.seekp(3);
      file.put('!');
    };
    CHECK(refused(300'000, flip).find("is damaged") != std::string::npos);
    const auto cut = [&](const std::string& folder) { fs::resize_file(folder + "/" + name, 2); };
    CHECK(refused(300'000, cut).find("is torn") != std::string::npos);
  }
}

}  // namespace
}  // namespace elasticrun::worker::state
