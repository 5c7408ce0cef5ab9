// What waits to be written to files of one kind, in order and within a limit (pure).
//
// When a text does not fit, it is refused, and so is every other until half of the room is free
// again. What is lost is then one gap, which is said when it begins and when it ends; a reader that
// is a little too slow would otherwise cost one line here and one there, and a message for each. Of
// a reader that is slow but reads the workers are told long before (crowded), so nothing is lost.
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
    std::size_t ended_after = 0;  // this text is taken again, after so many lines were not
  };
  // `closes`: no more is expected for that file, which is closed when this is written.
  Gap put(const std::string& file, std::string_view text, bool closes, Time now);
  // For the few lines that say what happened: there is room for them beyond the limit.
  void put_own(const std::string& file, std::string_view text, Time now);
  // The same without a text.
  void close(const std::string& file);

  struct Piece {
    std::string file;
    std::string text;
    bool closes = false;  // the file, after the text
  };
  bool empty() const { return pieces_.empty(); }
  // What comes next. It takes its room until it is done.
  Piece take();
  // So much of the piece that was taken last is written, or cannot be.
  void done(std::string_view text, Time now);

  // More waits than should, and some of it was written a moment ago.
  bool crowded(Time now) const;
  // When something was written last; of a queue that was empty, when that ended.
  Time progress() const { return progress_; }
  // In the gap that has not ended.
  std::size_t refused_lines() const { return refused_lines_; }
  // All that was put and is not written.
  std::size_t unwritten_lines() const { return lines_ + refused_lines_; }

 private:
  void append(const std::string& file, std::string_view text, Time now);

  std::size_t bytes_max_;
  std::deque<Piece> pieces_;
  std::size_t bytes_ = 0;  // of the pieces, and of the one that was taken last
  std::size_t lines_ = 0;  // likewise
  std::size_t refused_lines_ = 0;
  bool in_gap_ = false;
  Time progress_{};
};

}  // namespace elasticrun::cli::run
