// Which hosts and workers are silent, and which workers hang: signs of life in, verdicts out, time
// as a parameter.
//
// There are three clocks for three different faults. If an agent is silent, its host is at fault
// (power, network). If a library is silent under a live agent, the worker is at fault (stopped,
// swapped out). If a worker reports that it has been computing for longer than --hung, its program
// is at fault. A worker that has been reducing for that long does not show which one is at fault,
// so its group is broken and formed again; this happens sooner where a link is known to lose what
// is sent, since no patience helps against that. The others wait for a worker in on_epoch (an
// evaluation or a save), which has a longer limit. A phi-accrual detector would adapt to jitter,
// but plain limits can be put in a table, and a user can reason about them.
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
struct WorkerSilent {  // or it hangs
  WorkerId worker;
  std::string reason;
};
struct ReductionStuck {
  WorkerId worker;
  Generation generation;
  std::string reason;
};
// All hosts are silent at once: a batch system has suspended them, or this machine has no network.
// Each is still given up when its connection is lost, or when it stays silent for `patience` in
// all.
struct EverybodySilent {
  std::size_t hosts = 0;
  Duration patience{};
};
using Verdict = std::variant<HostSilent, WorkerSilent, ReductionStuck, EverybodySilent>;

class Liveness {
 public:
  struct Options {
    Duration agent_timeout = std::chrono::seconds(5);
    Duration worker_timeout = std::chrono::seconds(10);  // the lease
    Duration standstill = std::chrono::hours(1);         // beyond the lease, for all hosts together
    Duration hung = std::chrono::minutes(10);
    Duration epoch_timeout = std::chrono::hours(2);  // instead of hung, in on_epoch
    Duration lost_link =
        std::chrono::seconds(30);  // instead of hung, in reductions over a bad link
  };

  explicit Liveness(Options options) : options_(options) {}

  void host_heard(HostId host, Time now);
  void host_gone(HostId host);
  // To be called for any message. A worker is watched from its first message on, so programs
  // without the library never count as silent.
  void worker_heard(WorkerId worker, Time now) { workers_.heard(worker, now); }
  void worker_sample(WorkerId worker, const wire::Sample& sample, Time now);
  void worker_gone(WorkerId worker);

  // The controller itself stood still for `time`: silence in that time counts against none of them.
  void stood_still(Duration time, Time now);

  // The verdicts that are due, each once: a host or worker named in one is forgotten until it is
  // heard again. Costs nothing while none is late. `state_kept`: the workers hold a state, so if
  // all hosts are silent, they have the standstill timeout; otherwise only worker_timeout.
  std::vector<Verdict> check(Time now, bool state_kept);
  // When to call check next; in the past if a worker's own sample shows that it is late.
  Time wake_at(bool state_kept) const;

 private:
  enum class Phase { elsewhere, busy, reducing, ending_epoch };
  // What a worker was doing according to its last sample.
  struct Doing {
    Phase phase = Phase::elsewhere;
    Time since{};
    bool lost_link = false;
    Generation generation;
    // The others wait for this worker.
    bool busy() const { return phase == Phase::busy || phase == Phase::ending_epoch; }
  };

  void note(WorkerId worker, const Doing& doing, Time now);
  void unnote(WorkerId worker, const Doing& doing);
  bool is_late(const Doing& doing, Time now) const;
  // Workers in a reduction wait for the busy ones: while there are any, no reduction counts as
  // stuck.
  bool somebody_is_stuck() const { return busy_ == 0 && !stuck_.empty(); }
  Duration limit(Phase phase) const;
  // The workers could not be heard for `time`: their silence in it counts against none of them.
  void workers_unheard(Duration time, Time now);
  // How long a host may be silent now.
  Duration patience(bool state_kept) const {
    if (!everybody_) return options_.agent_timeout;
    return options_.worker_timeout + (state_kept ? options_.standstill : Duration::zero());
  }
  void check_hosts(Time now, bool state_kept, std::vector<Verdict>& verdicts);
  void check_stuck(Time now, std::vector<Verdict>& verdicts);

  Options options_;
  LastHeard<HostId> hosts_;
  bool everybody_ = false;  // all hosts are silent, and the verdict was given
  LastHeard<WorkerId> workers_;
  IdMap<WorkerId, Doing> doing_;  // of workers that have sent a sample
  int busy_ = 0;                  // number of these that are busy
  // By their last samples: busy for too long (hung), in a reduction for too long (stuck).
  std::set<WorkerId> hung_, stuck_;
};

}  // namespace elasticrun::rendezvous
