// Each trouble with the source of the hosts is reported once, and so is its end.
#include "job/core/hosts/source_notes.hpp"

#include <doctest/doctest.h>

using namespace elasticrun;
using namespace std::chrono_literals;
using job::HostsNoted;
using job::hosts::SourceNotes;

namespace {

const Time start = Time(1h);

std::string text_of(const std::optional<HostsNoted>& note) {
  if (!note) return {};
  return (note->well ? "well: " : "trouble: ") + note->text;
}

}  // namespace

TEST_CASE("a missing file is reported once, after a second, and once more when it is back") {
  SourceNotes notes("hosts", false);
  CHECK(text_of(notes.away("No such file", start)).empty());
  CHECK(text_of(notes.back()).empty());  // it was only replaced
  CHECK(text_of(notes.away("No such file", start + 900ms)).empty());
  CHECK(text_of(notes.away("No such file", start + 1800ms)).empty());
  CHECK(text_of(notes.away("No such file", start + 1900ms)) ==
        "trouble: hosts cannot be read: No such file; the hosts stay as they are until it can");
  CHECK(text_of(notes.away("No such file", start + 2100ms)).empty());
  CHECK(text_of(notes.away("Permission denied", start + 2300ms)) ==
        "trouble: hosts cannot be read: Permission denied; the hosts stay as they are until it "
        "can");
  CHECK(text_of(notes.back()) == "well: hosts can be read again");
  CHECK(text_of(notes.back()).empty());
}

TEST_CASE("a mistake in a file is reported once for each change of the file") {
  SourceNotes notes("hosts", false);
  CHECK(text_of(notes.well()).empty());
  for (int i = 0; i < 10; ++i)
    CHECK(text_of(notes.trouble("hosts:1: x")) ==
          "trouble: hosts:1: x; the hosts stay as they are");
  CHECK(text_of(notes.well()) == "well: hosts names hosts again");
  CHECK(text_of(notes.well()).empty());
}

TEST_CASE("a program's trouble is reported once, and at most five different ones in a row") {
  SourceNotes notes("--host-discovery", true);
  CHECK_FALSE(text_of(notes.trouble("exit code 1")).empty());
  CHECK(text_of(notes.trouble("exit code 1")).empty());
  for (int i = 2; i < 5; ++i) CHECK_FALSE(text_of(notes.trouble(std::to_string(i))).empty());
  CHECK(text_of(notes.trouble("5")) ==
        "trouble: 5; the hosts stay as they are; no more is logged until it works again");
  CHECK(text_of(notes.trouble("6")).empty());
  CHECK(text_of(notes.well()) == "well: --host-discovery names hosts again");
  CHECK_FALSE(text_of(notes.trouble("6")).empty());
}
