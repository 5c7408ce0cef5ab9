// The texts that wait to be written to files of one kind, in order and within a limit (pure).
//
// A text that does not fit is refused, and so are all texts after it until half of the room is free
// again. So the loss is one gap, which can be reported when it begins and when it ends. Otherwise a
// reader that is a little too slow would cost single lines here and there, with a message for each.
// When a reader is slow but does read, the workers are held back long before this (congested), and
// nothing is lost.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "base/time.hpp"

namespace elasticrun::cli::run {

class WriteQueue {
 public:
  explicit WriteQueue(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  struct Gap {
    bool begins = false;          // this text is the first that is refused
    std::size_t ended_after = 0;  // number of lines refused before this text, the first taken again
  };
  // `closes`: no more text is expected for that file, so it is closed once this text is written.
  Gap put(const std::string& file, std::string_view text, bool closes, Time now);
  // For our own few messages: there is extra room for them beyond the limit.
  void put_own(const std::string& file, std::string_view text, Time now);
  // Closes that file once all that was put before is written.
  void close(const std::string& file);

  struct Piece {
    std::string file;
    std::string text;
    bool closes = false;  // close the file after the text
  };
  bool empty() const { return pieces_.empty(); }
  // Removes and returns the next piece. Its bytes still count against the limit until done().
  Piece take();
  // `text`, a part of the piece that was taken last, has been written, or cannot be written.
  void done(std::string_view text, Time now);

  // Whether too much is waiting although something was written within the last few seconds: the
  // reader is slow, but does read.
  bool congested(Time now) const;
  // When something was last written, or was last put into the empty queue.
  Time progress() const { return progress_; }
  // Number of lines refused in the gap that has not ended yet.
  std::size_t refused_lines() const { return refused_lines_; }
  // Number of lines that were put and are not written: those still waiting and those refused in
  // the present gap.
  std::size_t unwritten_lines() const { return lines_ + refused_lines_; }

 private:
  void append(const std::string& file, std::string_view text, Time now);

  std::size_t bytes_max_;
  std::deque<Piece> pieces_;
  std::size_t bytes_ = 0;  // in pieces_ and in the piece taken last, as far as it is not done
  std::size_t lines_ = 0;  // the same, in lines
  std::size_t refused_lines_ = 0;
  bool in_gap_ = false;
  Time progress_{};
};

}  // namespace elasticrun::cli::run
