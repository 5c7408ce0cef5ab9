// Runs a program of the user that answers a question, one run at a time (a driver).
//
// The program prints which hosts there are (--host-discovery), or which size the job should have
// (--policy exec:). It is not our code: it may hang, print without end, or leave processes behind.
// So each run is a session of its own, without a terminal, with a limit on time and on output. Its
// whole process group is killed at its end, and also when this program is killed: a shell in the
// group reads from a socket whose other end only we hold. PR_SET_PDEATHSIG would not do: it
// reaches only the first process, not what a script has started.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"

namespace boost::asio {
class io_context;
}

namespace elasticrun::launcher::executors {

struct Hook {
  std::string command;         // for sh(1)
  Duration timeout{};          // for one run
  std::string_view flag = {};  // flag that sets `timeout`, for the error message; empty: none
};

struct HookAnswer {
  // What the program printed, or why that does not count ("took longer than 5.0 s"). Errors of the
  // same kind have the same text up to the first digit or colon.
  Result<std::string> output;
  std::string stderr_text;  // the first 4 KiB of what it wrote to standard error
  int exit_code = 0;        // where it ended by itself
};

class HookProcess {
 public:
  HookProcess(boost::asio::io_context& io, Hook hook);
  ~HookProcess();  // kills a run that has not ended

  // Starts a run; no other run may be under way. The program reads `input`, which consists of lines
  // without zero bytes, from its standard input. `done` is called once, never from inside a
  // function of this class.
  void run(std::string input, std::function<void(HookAnswer)> done);
  // The process of the run under way; 0: none.
  int pid() const;

 private:
  struct Run;
  void give_input(const std::shared_ptr<Run>& run);
  void read_output(const std::shared_ptr<Run>& run);
  void read_errors(const std::shared_ptr<Run>& run);
  void watch(const std::shared_ptr<Run>& run);
  void finish_if_over(const std::shared_ptr<Run>& run);

  boost::asio::io_context& io_;
  Hook hook_;
  std::shared_ptr<Run> run_;  // the run under way; null: none
};

// Runs the program once and waits until it has ended.
HookAnswer run_hook(Hook hook, std::string input = {});

}  // namespace elasticrun::launcher::executors
