// When the next change may begin.
#include "job/core/course/changes.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace elasticrun::job::course {
namespace {

using std::chrono::milliseconds;
using How = rendezvous::ChangeEnded::How;

TEST_CASE("each refusal in a row doubles the pause, and nothing else does") {
  struct Case {
    std::vector<How> ends;
    milliseconds pause;
  };
  using enum How;
  for (const Case& c : {
           Case{{done}, milliseconds(0)},
           {{refused}, milliseconds(100)},
           {{refused, refused}, milliseconds(200)},
           {std::vector(20, refused), milliseconds(6400)},
           {{refused, refused, done, refused}, milliseconds(100)},
           // A loss during a change says nothing against the change itself.
           {std::vector(20, overtaken), milliseconds(0)},
           {{refused, overtaken, refused}, milliseconds(200)},
       }) {
    CAPTURE(c.ends.size());
    Changes changes;
    Time now{};
    for (const How how : c.ends) {
      if (changes.wake_at(now) != never) now = changes.wake_at(now);
      REQUIRE(changes.may_begin(now));
      const ChangeId id = changes.begin({}, "a test").id;
      CHECK_FALSE(changes.may_begin(now));
      REQUIRE(changes.ended(id, how, now));
    }
    CHECK(changes.may_begin(now + c.pause));
    if (c.pause > milliseconds(0)) CHECK_FALSE(changes.may_begin(now + c.pause - milliseconds(1)));
  }
}

TEST_CASE("the end of another change does not count") {
  Changes changes;
  const ChangeId id = changes.begin({}, "a test").id;
  CHECK_FALSE(changes.ended(id.next(), How::done, Time{}));
  CHECK(changes.under_way());
}

}  // namespace
}  // namespace elasticrun::job::course
