// A program of somebody else that is asked something: one run of it (a driver).
//
// It may print which hosts there are (--host-discovery), or which size the job should have
// (--policy exec:). It is foreign and may hang, flood, or leave processes behind. So each run is
// a session of its own, without a terminal, with a limit on time and on output; its whole process
// group is killed at its end, and also when this program is killed: a shell in the group reads a
// socket whose other end only we hold, the hook. Why not PR_SET_PDEATHSIG: it would reach the
// first process only, not what a script has called.
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

namespace elasticrun::job::driver {

struct Hook {
  std::string command;         // for sh(1)
  Duration length{};           // of time, for one run
  std::string_view flag = {};  // that sets it, for who reads that it was too short
};

struct HookAnswer {
  // What it printed, or why that does not count ("took longer than 5.0 s"). An error begins with
  // the same words for the same kind of trouble, up to the first figure or colon.
  Result<std::string> output;
  std::string words;  // the begin of what it wrote to standard error; at most 4 KiB
};

class HookProcess {
 public:
  HookProcess(boost::asio::io_context& io, Hook hook);
  ~HookProcess();  // kills what runs

  // Never while one runs. It finds `input`, lines without zero bytes, on its standard input.
  // `done` is called once, never inside a call of ours.
  void run(std::string input, std::function<void(HookAnswer)> done);

 private:
  struct Run;
  void give_input(const std::shared_ptr<Run>& run);
  void read_output(const std::shared_ptr<Run>& run);
  void read_words(const std::shared_ptr<Run>& run);
  void watch(const std::shared_ptr<Run>& run);
  void finish_if_over(const std::shared_ptr<Run>& run);

  boost::asio::io_context& io_;
  Hook hook_;
  std::shared_ptr<Run> run_;  // null: none
};

// One run, waited for.
HookAnswer run_hook(Hook hook, std::string input = {});

}  // namespace elasticrun::job::driver
