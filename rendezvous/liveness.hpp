// Who is silent, and who hangs: signs of life in, verdicts out, time as a parameter.
//
// Three clocks, for three different faults. A silent agent blames its host (power, network). A
// silent library under a live agent blames the worker (stopped, swapped out). A worker that says it
// has been computing for longer than --hung blames its program; one that has been reducing that
// long blames nobody by itself, so its group is broken and formed anew: sooner where a link is
// known to lose what is sent, since no patience helps against that. One that is in on_epoch, for an
// evaluation or a save, is waited for by the others, and has a longer limit of its own. A
// phi-accrual detector would adapt to jitter; plain limits are what a person can put in a table and
// reason about.
#pragma once

#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/id_map.hpp"
#include "base/ids.hpp"
#include "base/time.hpp"
#include "rendezvous/last_heard.hpp"
#include "wire/messages.hpp"

namespace elasticrun::rendezvous {

struct HostSilent {
  HostId host;
  std::string reason;
};
struct WorkerSilent {  // or hung
  WorkerId worker;
  std::string reason;
};
struct ReductionStuck {
  WorkerId worker;
  Generation generation;
  std::string reason;
};
// All hosts at once: rather this machine, or its network. None is given up before it must have
// killed its workers.
struct EverybodySilent {
  std::size_t hosts = 0;
};
using Verdict = std::variant<HostSilent, WorkerSilent, ReductionStuck, EverybodySilent>;

struct LivenessOptions {
  Duration agent_timeout = std::chrono::seconds(5);
  Duration worker_timeout = std::chrono::seconds(10);  // and of all hosts together: the lease
  Duration hung = std::chrono::minutes(10);
  Duration epoch_timeout = std::chrono::hours(2);  // instead of hung, in on_epoch
  Duration lost_link = std::chrono::seconds(30);   // instead of hung, for a reduction over one
};

class Liveness {
 public:
  explicit Liveness(LivenessOptions options) : options_(options) {}

  void host_heard(HostId host, Time now);
  void host_gone(HostId host);
  // Any message. Starts with the first one, so plain programs are never silent.
  void worker_heard(WorkerId worker, Time now) { workers_.heard(worker, now); }
  void worker_sample(WorkerId worker, const wire::Sample& sample, Time now);
  void worker_gone(WorkerId worker);

  // We stood still ourselves: what was not heard in that time says nothing of anybody.
  void stood_still(Duration time, Time now);

  // Each verdict is given once: who is named is forgotten until heard again. Costs nothing while
  // nobody is late.
  std::vector<Verdict> check(Time now);
  // In the past where somebody is late by its own word.
  Time wake_at() const;

 private:
  enum class Phase { elsewhere, busy, reducing, ending_epoch };
  // What a worker was doing when it last told.
  struct Doing {
    Phase phase = Phase::elsewhere;
    Time since{};
    bool lost_link = false;
    Generation generation;
    // The others wait for it.
    bool busy() const { return phase == Phase::busy || phase == Phase::ending_epoch; }
  };

  void note(WorkerId worker, const Doing& doing, Time now);
  void unnote(WorkerId worker, const Doing& doing);
  bool is_late(const Doing& doing, Time now) const;
  // Who is busy is waited for by those in a reduction, and nobody else is to blame for that.
  bool somebody_is_stuck() const { return busy_ == 0 && !stuck_.empty(); }
  Duration limit(Phase phase) const;
  void check_hosts(Time now, std::vector<Verdict>& verdicts);
  void check_stuck(Time now, std::vector<Verdict>& verdicts);

  LivenessOptions options_;
  LastHeard<HostId> hosts_;
  bool everybody_ = false;  // is silent, and that was told
  LastHeard<WorkerId> workers_;
  IdMap<WorkerId, Doing> doing_;     // of workers that have told
  int busy_ = 0;                     // of these
  std::set<WorkerId> hung_, stuck_;  // busy, or in a reduction, for too long, as they last told
};

}  // namespace elasticrun::rendezvous
