// Cuts a stream of bytes into whole lines: a program's output arrives in arbitrary pieces, and the
// lines of several programs must not be mixed within a line.
//
// An incremental splitter and not std::getline, because the stream never ends while the job runs
// and because a line has a limit: a program that never prints a newline must not fill our memory.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace elasticrun::launcher::executors {

// Appended to each piece of a line that was too long except the last, so that the reader sees that
// the line goes on.
inline constexpr std::string_view cut_mark = " [...]";

class LineSplitter {
 public:
  // `max`: the most bytes of one line, not counting newline and mark; at least 4 (one UTF-8
  // character).
  explicit LineSplitter(std::size_t max);

  // Appends to `out` every line that `bytes` completes, newline included; keeps the rest.
  void feed(std::string_view bytes, std::string& out);
  // To be called when the stream has ended: appends what is left as a line, with a newline.
  void finish(std::string& out);

 private:
  void cut(std::string& out);

  std::size_t max_;
  std::string rest_;  // begin of a line that is not complete yet; at most max_ bytes between calls
};

}  // namespace elasticrun::launcher::executors
