// Which texts the queue keeps or refuses, and what it reports about that.
#include "cli/run/write_queue.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <vector>

using namespace elasticrun;
using namespace elasticrun::cli;
using namespace elasticrun::cli::run;
using namespace std::chrono_literals;

namespace {

constexpr Time start{1h};

std::string text_of(std::size_t bytes) { return std::string(bytes - 1, 'x') + '\n'; }

// Takes everything that waits, in order, and marks it as written.
std::vector<std::string> drain(WriteQueue& queue, Time now = start) {
  std::vector<std::string> pieces;
  while (!queue.empty()) {
    const WriteQueue::Piece piece = queue.take();
    queue.done(piece.text, now);
    pieces.push_back(piece.file + ":" + piece.text + (piece.closes ? "." : ""));
  }
  return pieces;
}

}  // namespace

TEST_CASE("a gap begins when the room is used up, and ends when half of it is free") {
  // Texts of these sizes are put into a queue of 100 bytes; 0: a piece is written.
  struct Row {
    std::vector<std::size_t> sizes;
    std::vector<std::size_t> begins, ends;  // at which of these texts
    std::size_t lost;                       // lines, when the gap ended or at the end
  };
  const Row rows[] = {
      {{40, 40, 20}, {}, {}, 0},           // just full
      {{40, 40, 21}, {2}, {}, 1},          // one byte too many
      {{60, 50, 10}, {1}, {}, 2},          // a text that would fit is refused during the gap, too
      {{60, 50, 10, 0, 10}, {1}, {4}, 2},  // half of the room is free again
      {{60, 50, 0, 51}, {1}, {}, 2},       // too large for half of the room
      {{101}, {0}, {}, 1},                 // too large for all of the room
      {{101, 50, 0, 101, 50}, {0, 3}, {1, 4}, 1},
  };
  for (const Row& row : rows) {
    WriteQueue queue(100);
    std::vector<std::size_t> begins, ends;
    std::size_t lost = 0;
    for (std::size_t i = 0; i < row.sizes.size(); ++i) {
      CAPTURE(i);
      if (row.sizes[i] == 0) {
        queue.done(queue.take().text, start);
        continue;
      }
      const auto gap = queue.put("file", text_of(row.sizes[i]), false, start);
      if (gap.begins) begins.push_back(i);
      if (gap.ended_after > 0) ends.push_back(i), lost = gap.ended_after;
    }
    CHECK(begins == row.begins);
    CHECK(ends == row.ends);
    CHECK(std::max(lost, queue.refused_lines()) == row.lost);
  }
}

TEST_CASE("lines are counted, however they are put and written") {
  WriteQueue queue(100);
  const std::string first = "1\n2\n" + text_of(60);
  queue.put("file", first, false, start);
  CHECK(queue.unwritten_lines() == 3);
  queue.put("file", text_of(100), false, start);
  queue.put("file", "6\n7\n", false, start);
  CHECK(queue.refused_lines() == 3);
  CHECK(queue.unwritten_lines() == 6);
  CHECK(queue.take().text == first);
  queue.done("1\n2", start);
  CHECK(queue.unwritten_lines() == 5);
  queue.done(first.substr(3), start);
  CHECK(queue.put("file", "8\n9\n", false, start).ended_after == 3);
  CHECK(queue.refused_lines() == 0);
  CHECK(queue.unwritten_lines() == 2);
}

TEST_CASE("a piece that was taken needs its room until it is written") {
  WriteQueue queue(100);
  queue.put("file", text_of(80), false, start);
  const auto piece = queue.take();
  CHECK(queue.put("file", text_of(40), false, start).begins);
  queue.done(piece.text, start);
  CHECK(queue.put("file", text_of(40), false, start).ended_after == 1);
}

TEST_CASE("our own messages have extra room beyond the limit, and keep their place") {
  WriteQueue queue(10);
  queue.put("file", text_of(10), false, start);
  CHECK(queue.put("file", text_of(1), false, start).begins);
  queue.put_own("file", "own\n", start);
  CHECK(drain(queue) == std::vector<std::string>{"file:xxxxxxxxx\nown\n"});
  queue.put_own("file", text_of(2 << 20), start);  // but not unlimited room
  CHECK(drain(queue).empty());
}

TEST_CASE("consecutive lines for one file are joined, and the order is kept") {
  WriteQueue queue(1000);
  for (const char* file : {"a", "a", "b", "a"}) queue.put(file, "x\n", false, start);
  CHECK(drain(queue) == std::vector<std::string>{"a:x\nx\n", "b:x\n", "a:x\n"});
}

TEST_CASE("a file is closed after its last text, and opened again by a later one") {
  WriteQueue queue(1000);
  queue.put("a", "x\n", false, start);
  queue.close("a");
  queue.put("b", "y\n", false, start);
  queue.close("a");
  queue.close("c");
  queue.put("a", "late\n", true, start);
  CHECK(drain(queue) == std::vector<std::string>{"a:x\n.", "b:y\n", "a:.", "c:.", "a:late\n."});
  WriteQueue full(10);
  for (int i = 0; i < 1000; ++i) full.put("a", text_of(8), true, start);
  CHECK(drain(full).size() == 1);  // refused texts leave nothing behind
}

TEST_CASE("the queue is crowded when much waits and something was written recently") {
  WriteQueue queue(32 << 20);
  queue.put("a", text_of(1 << 20), false, start);
  CHECK_FALSE(queue.congested(start));
  queue.put("a", text_of(1 << 20), false, start + 1s);
  CHECK(queue.congested(start + 2s));
  CHECK_FALSE(queue.congested(start + 3s));  // nothing has been written for a while
  const auto piece = queue.take();
  queue.done(std::string_view(piece.text).substr(0, 10), start + 5s);
  CHECK(queue.congested(start + 6s));
  queue.done(std::string_view(piece.text).substr(10), start + 6s);
  CHECK_FALSE(queue.congested(start + 6s));
  // A queue that was empty does not remember when it was last written.
  drain(queue, start + 6s);
  queue.put("a", text_of(2 << 20), false, start + 1h);
  CHECK(queue.progress() == start + 1h);
  CHECK(queue.congested(start + 1h + 1s));
}
