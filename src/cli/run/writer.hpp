// Writes to files of one kind from a thread of its own, so that one which stands still (a pipe
// whose reader sleeps, a file server that does not answer) holds up nothing but its own kind.
//
// There is a writer for the terminal, one for the event file and one for all log files, which lie
// in one folder and stand still together. A thread for each file would be thousands. Asynchronous
// writes would need no thread, but on Linux a file on a disk or a file server is always ready and
// then blocks all the same, and io_uring is forbidden in many containers.
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

// So many files of one kind are open at most; the one that was written longest ago makes room.
inline constexpr std::size_t open_files_max = 512;

// Writes all of it, whatever interrupts it and whoever has made the descriptor non-blocking: that
// flag belongs to the open file, which others may share. Returns the error, or 0. `written` is told
// of each part.
int write_all(int descriptor, std::string_view text,
              const std::function<void(std::string_view)>& written);

class Writer {
 public:
  // Both are called on the writer's thread.
  struct Handlers {
    // Without a descriptor errno says why.
    std::function<net::Fd(const std::string& file)> open;
    // The first time that something could not be written; the next text is tried all the same.
    std::function<void(const std::string& file, int error)> trouble;
  };
  Writer(const char* thread_name, std::size_t bytes_max, Handlers handlers);
  ~Writer();  // waits for as long as it takes, unless finish() has found that it stands still
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  WriteQueue::Gap put(const std::string& file, std::string_view text, bool closes = false);
  void put_own(const std::string& file, std::string_view text);
  void close(const std::string& file);
  bool crowded() const;
  std::size_t refused_lines() const;

  struct Patience {
    Duration standstill = Duration::max();  // without anything being written
    Duration in_all = Duration::max();
  };
  // After the last call of put: false when it has not written all within this patience. Its thread
  // cannot be ended then, but the process can.
  bool finish(Patience patience);
  std::size_t unwritten_lines() const;

 private:
  struct OpenFile {
    net::Fd fd;
    std::uint64_t used = 0;  // larger: later
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

  // The thread's own.
  std::map<std::string, OpenFile> open_;
  std::uint64_t uses_ = 0;
  bool trouble_told_ = false;
  std::thread thread_;
};

}  // namespace elasticrun::cli::run
