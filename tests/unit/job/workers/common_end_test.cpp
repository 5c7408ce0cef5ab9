// When the end of all members counts as one mistake, and when as the loss of the state.
#include "job/core/workers/common_end.hpp"

#include <doctest/doctest.h>

#include <csignal>

namespace elasticrun::job::workers {
namespace {

using End = CommonEnd::End;

End exits(const char* worker, int code) { return {worker, "exited", code, 0, true}; }
End dies(const char* worker, int signal) { return {worker, "was killed", 0, signal, true}; }

TEST_CASE("the same exit code or crash of all members is one mistake; other ends are not") {
  End fenced = exits("b", 3);
  fenced.own = false;
  struct Case {
    std::vector<End> ends;
    int code;  // 0: no common mistake
    const char* words;
  };
  const Case cases[] = {
      {{}, 0, ""},
      {{exits("a", 3)}, 3, "a exited"},
      {{exits("b", 3), exits("a", 3)}, 3, "b exited, and so did the others"},
      {{exits("a", 3), exits("b", 4)}, 0, ""},
      {{exits("a", 3), dies("b", SIGSEGV)}, 0, ""},
      // they left during training: there is no exit code to end with
      {{exits("a", 0), exits("b", 0)}, 0, ""},
      {{dies("a", SIGSEGV), dies("b", SIGSEGV)}, 139, "a was killed, and so were the others"},
      {{dies("a", SIGABRT)}, 134, "a was killed"},
      // sent by a user, or by the kernel out of memory
      {{dies("a", SIGKILL), dies("b", SIGKILL)}, 0, ""},
      {{dies("a", SIGTERM)}, 0, ""},
      {{exits("a", 3), fenced}, 0, ""},
  };
  for (const Case& c : cases) {
    CommonEnd ends;
    for (const End& end : c.ends) ends.add(end);
    const auto mistake = ends.mistake();
    CAPTURE(c.ends.size());
    CAPTURE(std::string(c.words));
    CHECK(mistake.has_value() == (c.code != 0));
    if (!mistake) continue;
    CHECK(mistake->exit_code == c.code);
    CHECK(mistake->words == c.words);
  }
}

TEST_CASE("a failure that a world has survived was not a mistake of all members") {
  CommonEnd ends;
  ends.add(exits("a", 3));
  ends.survived();
  CHECK_FALSE(ends.mistake());
  ends.add(exits("b", 4));
  CHECK(ends.mistake()->words == "b exited");
}

}  // namespace
}  // namespace elasticrun::job::workers
