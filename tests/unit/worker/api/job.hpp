// A controller for the tests: the real Membership, a Unix socket like an agent's, and toy workers
// as processes. Tests never sleep; they wait for lines and messages.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rendezvous/membership.hpp"

namespace elasticrun::engine_test {

struct Exit {
  int code = 0;
  int signal = 0;
};

class Job {
 public:
  // Every world has this global batch, so any sequence of worlds makes the same updates.
  explicit Job(BatchPlan plan);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  using Arguments = std::vector<std::string>;
  WorkerId start(const Arguments& arguments);
  // Starts n workers with the same arguments and, when all are ready, forms the first world.
  std::vector<WorkerId> form(int n, const Arguments& arguments);
  void change(const std::vector<WorkerId>& add, const std::vector<WorkerId>& remove = {});
  void kill(WorkerId worker);
  void let_go(WorkerId worker);                               // continue after a --hold
  void hang_up(WorkerId worker);                              // as if the agent were gone
  void send(WorkerId worker, const wire::ToWorker& message);  // until_heard() waits for it

  // Delays all further messages of this worker until they are let through.
  void hold_messages(WorkerId worker);
  void let_messages_through(WorkerId worker);

  // Runs until the condition holds; fails the test after a minute.
  void until(const std::string& what, const std::function<bool()>& holds);
  void until_line(WorkerId worker, const std::string& begin);
  void until_ready(const std::vector<WorkerId>& workers);
  // Waits until all members of the prepared world have received its Go: a step whose reduction
  // begins after this is the last one of the old world.
  void until_going(Generation generation);
  // Waits until every Go and Abort, and every message of send(), has been received.
  void until_heard();
  void until_all_ended();

  const std::vector<std::string>& lines(WorkerId worker) const;
  bool has_line(WorkerId worker, const std::string& begin) const;
  Exit exit_of(WorkerId worker) const;
  // The rest of the last line that begins with this text.
  std::string said(WorkerId worker, const std::string& begin) const;
  std::vector<std::vector<std::string>> all_lines() const;

  // What the membership has reported, in order.
  std::vector<rendezvous::WorldFormed> worlds;
  std::vector<rendezvous::Trained> trained;
  std::vector<rendezvous::ChangeEnded> changes;
  std::vector<wire::Sample> samples;
  bool state_lost = false;
  // Called with every message before the membership gets it.
  std::function<void(WorkerId, const wire::FromWorker&)> on_message;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The lines that a worker prints when it runs alone, without elasticrun.
std::vector<std::string> run_alone(const Job::Arguments& arguments);

}  // namespace elasticrun::engine_test
