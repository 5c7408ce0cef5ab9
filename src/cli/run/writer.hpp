// Writes to files of one kind from a separate thread, so that a file that blocks (a pipe whose
// reader sleeps, a file server that does not answer) holds up nothing but files of its kind.
//
// There is one writer for the terminal, one for the event file and one for all log files, which lie
// in one folder and block together. A thread for each file could mean thousands of threads.
// Asynchronous writes would need no thread, but on Linux a file on a disk or a file server always
// counts as ready and then blocks nevertheless, and io_uring is forbidden in many containers.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "cli/run/write_queue.hpp"
#include "net/sockets.hpp"

namespace elasticrun::cli::run {

// Most files of one kind that are open at a time; to open another one, the least recently written
// one is closed.
inline constexpr std::size_t open_files_max = 512;

// Writes all of `text`, in spite of signals and even if the descriptor is non-blocking: another
// process that shares the open file may have set that flag. Returns errno, or 0. Calls `written`
// for each part that was written.
int write_all(int descriptor, std::string_view text,
              const std::function<void(std::string_view)>& written);

class Writer {
 public:
  // Both are called on the writer's thread.
  struct Handlers {
    // Opens a file. When it returns no descriptor, errno says why.
    std::function<net::Fd(const std::string& file)> open;
    // Called only the first time that something could not be written; later texts are still tried.
    std::function<void(const std::string& file, int error)> trouble;
  };
  Writer(const char* thread_name, std::size_t bytes_max, Handlers handlers);
  ~Writer();  // waits until all is written, however long that takes
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Passed on to the writer's queue; see write_queue.hpp.
  WriteQueue::Gap put(const std::string& file, std::string_view text, bool closes = false);
  void put_own(const std::string& file, std::string_view text);
  void close(const std::string& file);
  bool congested() const;
  std::size_t refused_lines() const;

  struct Patience {
    Duration standstill = Duration::max();  // longest time without anything being written
    Duration in_all = Duration::max();      // longest time in all
  };
  // To be called after the last put. Waits until all is written; false when that did not happen
  // within this patience. The thread cannot be ended then, but the process can.
  bool finish(Patience patience);
  std::size_t unwritten_lines() const;

 private:
  struct OpenFile {
    net::Fd fd;
    std::uint64_t used = 0;  // number of its last use; larger means later
  };

  void run();
  void write(const WriteQueue::Piece& piece);
  int descriptor_of(const std::string& file);

  const Handlers handlers_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  WriteQueue queue_;
  bool closing_ = false;
  bool finished_ = false;

  // Used by the writer's thread only.
  std::map<std::string, OpenFile> open_;
  std::uint64_t uses_ = 0;
  bool trouble_told_ = false;
  std::thread thread_;
};

}  // namespace elasticrun::cli::run
