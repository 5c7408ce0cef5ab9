// Ranks on one GPU: each is a process with a host id of its own, because NCCL refuses two ranks of
// one host on one GPU; NCCL then connects them by sockets. The parent distributes the addresses, as
// the controller does in a job.
#pragma once

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace elasticrun::worker::testing {

inline void write_text(int fd, const std::string& text) {
  const auto bytes = static_cast<std::uint32_t>(text.size());
  const std::string framed(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  const std::string all = framed + text;
  for (std::size_t at = 0; at < all.size();) {
    const ssize_t n = ::write(fd, all.data() + at, all.size() - at);
    if (n <= 0) throw std::runtime_error("a rank is gone");
    at += static_cast<std::size_t>(n);
  }
}

inline std::string read_text(int fd) {
  const auto exactly = [fd](void* to, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes;) {
      const ssize_t n = ::read(fd, static_cast<char*>(to) + at, bytes - at);
      if (n <= 0) throw std::runtime_error("a rank is gone");
      at += static_cast<std::size_t>(n);
    }
  };
  std::uint32_t bytes = 0;
  exactly(&bytes, sizeof bytes);
  std::string text(bytes, ' ');
  exactly(text.data(), bytes);
  return text;
}

// In a rank: sends a text to the parent and returns the texts of all ranks.
class PipeExchange {
 public:
  PipeExchange(int fd, int size) : fd_(fd), size_(size) {}
  std::vector<std::string> operator()(const std::string& text) {
    write_text(fd_, text);
    std::vector<std::string> all;
    for (int rank = 0; rank < size_; ++rank) all.push_back(read_text(fd_));
    return all;
  }

 private:
  const int fd_;
  const int size_;
};

// Calls body(rank, exchange) in `size` processes; true when all have exited with 0.
inline bool run_processes(int size, const std::function<void(int, PipeExchange&)>& body) {
  std::vector<int> fds;
  std::vector<pid_t> pids;
  for (int rank = 0; rank < size; ++rank) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
    const pid_t pid = ::fork();
    if (pid == 0) {
      for (const int fd : fds) ::close(fd);
      ::close(ends[0]);
      ::setenv("NCCL_HOSTID", ("rank-" + std::to_string(rank)).c_str(), 1);
      int code = 0;
      try {
        PipeExchange exchange(ends[1], size);
        body(rank, exchange);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
        code = 1;
      }
      std::fflush(nullptr);
      std::_Exit(code);
    }
    ::close(ends[1]);
    fds.push_back(ends[0]);
    pids.push_back(pid);
  }
  bool well = true;
  try {
    for (;;) {
      std::vector<std::string> texts;
      for (const int fd : fds) texts.push_back(read_text(fd));
      for (const int fd : fds)
        for (const std::string& text : texts) write_text(fd, text);
    }
  } catch (const std::runtime_error&) {
    for (const int fd : fds) ::close(fd);  // the processes have ended, or end now
  }
  for (const pid_t pid : pids) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    well = well && status == 0;
  }
  return well;
}

}  // namespace elasticrun::worker::testing
