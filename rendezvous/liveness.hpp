// Who is silent, and who hangs: signs of life in, verdicts out, time as a parameter.
//
// Three clocks, for three different faults. A silent agent blames its host (power, network). A
// silent library under a live agent blames the worker (stopped, swapped out). A worker that says it
// has been computing for longer than --hung blames its program; one that has been reducing that
// long blames nobody by itself, so its group is broken and formed anew: sooner where a link is
// known to lose what is sent, since no patience helps against that. While somebody is in the
// program's on_epoch the others wait for it in a reduction, and rightly so. A phi-accrual detector
// would adapt to jitter; plain limits are what a person can put in a table and reason about.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
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
  Duration lost_link = std::chrono::seconds(30);  // instead of hung, for a reduction over one
};

class Liveness {
 public:
  explicit Liveness(LivenessOptions options) : options_(options) {}

  void host_heard(HostId host, Time now) { hosts_[host] = now; }
  void host_gone(HostId host) { hosts_.erase(host); }
  // Any letter. Starts with the first one, so plain programs are never silent.
  void worker_heard(WorkerId worker, Time now) { workers_[worker].heard = now; }
  void worker_sample(WorkerId worker, const wire::Sample& sample, Time now);
  void worker_gone(WorkerId worker) { workers_.erase(worker); }

  // We stood still ourselves: what was not heard in that time says nothing of anybody.
  void stood_still(Duration time, Time now);

  // Each verdict is given once: who is named is forgotten until heard again.
  std::vector<Verdict> check(Time now);
  Time wake_at() const;

 private:
  enum class Phase { elsewhere, busy, reducing, in_on_epoch };
  struct Worker {
    Time heard{};
    Phase phase = Phase::elsewhere;
    Time phase_since{};
    bool lost_link = false;
    Generation generation;
  };

  LivenessOptions options_;
  void check_hosts(Time now, std::vector<Verdict>& verdicts);

  std::map<HostId, Time> hosts_;
  bool everybody_ = false;  // is silent, as of the last check
  std::map<WorkerId, Worker> workers_;
};

}  // namespace elasticrun::rendezvous
