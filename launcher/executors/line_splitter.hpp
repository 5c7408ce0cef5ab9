// Cuts a stream of bytes into whole lines: what a program prints arrives in arbitrary pieces, and
// lines of several programs must not be mixed in the middle.
//
// An incremental splitter and not std::getline, because the stream never ends while the job runs
// and because a line has a limit: a program that never prints a newline must not fill our memory.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace elasticrun::launcher::executors {

// Ends each piece of a line that was too long, so that a reader sees that it goes on.
inline constexpr std::string_view cut_mark = " [...]";

class LineSplitter {
 public:
  // max: bytes of one line, newline and mark not counted; at least 4 (one UTF-8 character).
  explicit LineSplitter(std::size_t max);

  // Appends to `out` every line that `bytes` completes, newline included; keeps the rest.
  void feed(std::string_view bytes, std::string& out);
  // The stream has ended: appends the last line, given a newline if it had none.
  void finish(std::string& out);

 private:
  void cut(std::string& out);

  std::size_t max_;
  std::string rest_;  // of a line without its end yet; at most max_ bytes between calls
};

}  // namespace elasticrun::launcher::executors
