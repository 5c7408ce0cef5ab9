// Which workers are blamed for which complaints, as a table.
#include "rendezvous/complaints.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sstream>

using namespace elasticrun;
using namespace elasticrun::rendezvous;

namespace {

// "1>2": 1 complains about 2; "1>2h": 2 hung up; "1>2w": 1 waited for 2; "1>2l": the complaint is
// late.
Complaints complaints(const std::string& text) {
  Complaints complaints;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t arrow = word.find('>');
    const auto worker = [](const std::string& number) {
      return WorkerId(static_cast<std::uint32_t>(std::stoul(number)));
    };
    const auto marked = [&](char mark) { return word.find(mark) != word.npos; };
    complaints.add(worker(word),
                   {{.about = worker(word.substr(arrow + 1)),
                     .hung_up = marked('h'),
                     .waits = marked('w'),
                     .reason = "why " + word}},
                   marked('l'));
  }
  return complaints;
}

std::set<WorkerId> set(std::initializer_list<std::uint32_t> numbers) {
  std::set<WorkerId> workers;
  for (const auto number : numbers) workers.insert(WorkerId(number));
  return workers;
}

std::string names(const std::vector<Blamed>& blamed) {
  std::string text;
  for (const Blamed& one : blamed) text += fmt::format("{} ", one.worker.value);
  return text.substr(0, text.size() - !text.empty());
}

}  // namespace

TEST_CASE("the smallest set of workers whose absence settles all complaints is blamed") {
  struct Case {
    const char* complaints;
    const char* blamed;
    const char* why;
  };
  // Workers 1 to 4 are members, 11 to 14 newcomers.
  const Case cases[] = {
      {"", "", "nobody"},
      {"1>2", "2", "of two members the one that is complained about, not the messenger"},
      {"1>2 2>1", "2", "of two that complain about each other the newer one"},
      {"1>2 3>2 2>1 2>3 2>4", "2", "the one that most complain about"},
      {"1>2 1>3 1>4", "1", "the one that can reach nobody"},
      {"1>2 1>3", "1", "likewise"},
      {"1>2 4>2 1>3", "2 3", "of two that have as much trouble the newer one"},
      {"1>11", "11", "a newcomer"},
      {"11>1", "11", "a newcomer, also when it is the messenger: nobody needs it yet"},
      {"11>1 12>1 13>1", "13 12 11", "newcomers, although all complain about one member"},
      {"1>11 2>11 11>1 12>11 13>11", "11", "one bad newcomer, and none of the good ones"},
      {"12>11 13>11 14>11", "11", "among newcomers the one that most complain about"},
      {"1>2 11>12", "12 2", "two bad links"},
      {"1>2h", "2", "one that hung up and has said nothing"},
      {"1>2h 2>3", "3", "the trouble of the one that hung up because of it"},
      {"1>2h 2>9h", "", "that one has died, and the other one has only noticed"},
      {"1>2h 3>1h 2>11", "11", "a row of those who only passed it on"},
      {"1>2hl", "", "it was told to hang up"},
      {"1>2l", "2", "a link is as bad when it is reported late"},
      {"1>2h 2>9hl", "", "it had trouble of its own, though its word came late"},
      {"1>9", "", "one that is not there any more"},
      {"9>1", "", "by one that is not there any more"},
      {"1>1", "1", "its own trouble"},
      {"11>11", "11", "its own trouble"},
      {"1>11w 2>11w 11>1w", "11", "the one that all wait for"},
      {"1>2w 3>11", "11", "who waits means nothing where more is known"},
      {"1>2w 2>3w 3>4w", "4", "the last one in a row of those who wait"},
      {"1>2w 2>3w 3>1w", "3 2", "a circle of those who wait"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.complaints);
    const auto blamed =
        complaints(one.complaints).verdict(set({11, 12, 13, 14}), set({1, 2, 3, 4}));
    CHECK_MESSAGE(names(blamed) == one.blamed, one.why);
  }
}

TEST_CASE("the only worker that holds the state is not blamed") {
  const auto verdict = [](const char* text, std::uint32_t needed) {
    return names(complaints(text).verdict(set({11}), set({1, 2, 3}), WorkerId(needed)));
  };
  CHECK(verdict("1>2", 1) == "2");
  CHECK(verdict("1>2", 2) == "1");
  CHECK(verdict("1>2 3>2", 2) == "1 3");
  CHECK(verdict("2>2", 2) == "");
  CHECK(verdict("11>2", 2) == "11");
}

TEST_CASE("of two newcomers, the one that was named in earlier attempts is blamed") {
  const auto told = [](Complaints& to, std::uint32_t from, std::uint32_t about) {
    to.add(WorkerId(from), {{.about = WorkerId(about), .hung_up = true, .reason = "why"}});
  };
  Complaints all;
  told(all, 12, 11);
  CHECK(names(all.verdict(set({11, 12}), set({1}))) == "12");
  all.next_attempt();
  told(all, 13, 11);
  CHECK(names(all.verdict(set({11, 13}), set({1}))) == "11");
  all.next_attempt();
  all.forget();
  told(all, 14, 11);
  CHECK(names(all.verdict(set({11, 14}), set({1}))) == "14");
}

TEST_CASE("a worker that others waited for is not blamed where a worker has died") {
  const auto verdict = [](const char* text) {
    return names(complaints(text).verdict(set({11}), set({1, 2, 3, 4}), {}, true));
  };
  CHECK(verdict("1>2w 2>3w 3>4w") == "");
  CHECK(verdict("1>2w 3>11") == "11");
}

TEST_CASE("the reason names the link") {
  const auto blamed = complaints("1>11 11>1").verdict(set({11}), set({1}));
  REQUIRE(blamed.size() == 1);
  CHECK(blamed[0].why == "worker 1 has no connection to worker 11: why 1>11");
  CHECK(complaints("1>1").verdict({}, set({1}))[0].why == "why 1>1");
}
