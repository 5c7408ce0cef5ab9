// A person's program that prints which hosts there are now: one run of it (a driver).
//
// The program is foreign and may hang, flood, or leave processes behind. So each run is a session
// of its own, without a terminal, with a limit on time and on output; its whole process group is
// killed at its end, and also when this program is killed: a shell in the group reads a pipe whose
// other end only we hold. Why not PR_SET_PDEATHSIG: it would reach the first process only, not what
// a script has called.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "base/time.hpp"

namespace boost::asio {
class io_context;
}

namespace elasticrun::launcher {

struct Discovered {
  Result<std::string> hosts;  // what it printed, or why that does not count
  std::string words;          // the begin of what it wrote to standard error; at most 4 KiB
};

class HostDiscovery {
 public:
  // `command` is for sh(1).
  HostDiscovery(boost::asio::io_context& io, std::string command, Duration timeout);
  ~HostDiscovery();  // kills what runs

  // Never while one runs. `done` is called once, never inside a call of ours.
  void run(std::function<void(Discovered)> done);

 private:
  struct Run;
  void read_output(const std::shared_ptr<Run>& run);
  void read_words(const std::shared_ptr<Run>& run);
  void watch(const std::shared_ptr<Run>& run);
  void finish_if_over(const std::shared_ptr<Run>& run);

  boost::asio::io_context& io_;
  std::string command_;
  Duration timeout_;
  std::shared_ptr<Run> run_;  // null: none
};

// One run, waited for.
Discovered discover_hosts(const std::string& command, Duration timeout);

}  // namespace elasticrun::launcher
