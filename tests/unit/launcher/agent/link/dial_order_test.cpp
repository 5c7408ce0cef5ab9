// Which way to the controller is tried when. A line has a time in ms, an event, and the actions
// that follow. Events: t: time passes; cN: way N is connected; fN: way N has failed. Actions: N:
// dial address N; s: dial through ssh; x: give up.
#include "launcher/agent/link/dial_order.hpp"

#include <doctest/doctest.h>

#include <string>

namespace elasticrun::launcher::agent::link {
namespace {

struct Line {
  int ms;
  const char* event;
  const char* actions;
  int wake_ms;  // -1: never
};

struct Row {
  const char* what;
  std::size_t addresses;
  bool stream;
  std::vector<Line> lines;
};

DialEvent event_of(std::string_view text) {
  if (text == "t") return DialTick{};
  const auto route = static_cast<std::size_t>(text[1] - '0');
  if (text[0] == 'c') return DialConnected{route};
  return DialFailed{route};
}

std::string to_text(const std::vector<DialAction>& actions) {
  std::string text;
  for (const DialAction& action : actions) {
    if (const auto* dial = std::get_if<DialAddress>(&action)) text += std::to_string(dial->route);
    if (std::holds_alternative<DialThroughSsh>(action)) text += 's';
    if (std::holds_alternative<GiveUpDialling>(action)) text += 'x';
  }
  return text;
}

const std::vector<Row> rows = {
    {"one address that answers", 1, true, {{0, "t", "0", -1}, {1, "c0", "", -1}}},
    {"one address that refuses", 1, false, {{0, "t", "0", -1}, {1, "f0", "x", -1}}},
    {"silence: the next after a moment, none is let go",
     3,
     false,
     {{0, "t", "0", 300},
      {299, "t", "", 300},
      {300, "t", "1", 600},
      {600, "t", "2", -1},
      {5000, "f0", "", -1},
      {5300, "f1", "", -1},
      {5600, "f2", "x", -1}}},
    {"a refusal: the next at once",
     3,
     false,
     {{0, "t", "0", 300}, {5, "f0", "1", 305}, {6, "f1", "2", -1}, {7, "f2", "x", -1}}},
    {"a refusal of an old one: the next at once, too",
     3,
     false,
     {{0, "t", "0", 300}, {300, "t", "1", 600}, {400, "f0", "2", -1}}},
    {"a call that was taken: more patience",
     2,
     false,
     {{0, "t", "0", 300}, {10, "c0", "", 2010}, {300, "t", "", 2010}, {2010, "t", "1", -1}}},
    {"taken and then dropped: the next at once",
     2,
     false,
     {{0, "t", "0", 300}, {10, "c0", "", 2010}, {20, "f0", "1", -1}}},
    {"one refuses while another greets: patience",
     3,
     false,
     {{0, "t", "0", 300}, {300, "t", "1", 600}, {310, "c1", "", 2310}, {320, "f0", "", 2310}}},
    {"through ssh when all have failed",
     2,
     true,
     {{0, "t", "0", 300}, {1, "f0", "1", -1}, {2, "f1", "s", -1}, {900, "f2", "x", -1}}},
    {"no address at all: through ssh", 0, true, {{0, "t", "s", -1}, {9, "f0", "x", -1}}},
    {"no way at all", 0, false, {{0, "t", "x", -1}}},
};

TEST_CASE("ways to the controller are tried in order, and in parallel after a delay") {
  for (const Row& row : rows) {
    CAPTURE(row.what);
    DialOrder order(row.addresses, row.stream);
    for (const Line& line : row.lines) {
      CAPTURE(line.ms);
      CAPTURE(line.event);
      const Time now = Time{} + std::chrono::milliseconds(line.ms);
      CHECK(to_text(order.step(event_of(line.event), now)) == line.actions);
      const Time wake = line.wake_ms < 0 ? never : Time{} + std::chrono::milliseconds(line.wake_ms);
      CHECK(order.wake_at() == wake);
    }
  }
}

}  // namespace
}  // namespace elasticrun::launcher::agent::link
