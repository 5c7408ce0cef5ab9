// How the samples of a step are shared out among workers of different speed, so that all finish
// together.
//
// A step ends when its slowest member has: on mixed hosts, equal shares make the fast ones wait.
// Shares in proportion to speed end that (HetSeq, Ding et al. 2021; VirtualFlow, Or et al. 2022).
// Their speeds come from a person or a profile made before; here they are measured while the job
// trains, as samples per second of a worker's own compute. Compute has a part that no share
// shortens, so a speed holds near the share it was measured at. But new shares are measured again,
// and where they come to rest all finish together, whatever the law is. Fitting that law to two
// shares would save a round or two; two shares close together and some noise give any law.
//
// Shares must not flutter. Others are wanted only when each member has been measured in this world,
// the slowest is slow by more than its figures may err, and the whole step becomes 5 % shorter by
// them. Each is a trial: when the slowest takes no less time afterwards (a share just above what a
// device computes at once takes a second call), the former ones return. Every new try doubles the
// pause before the next, until one pause was long and quiet.
//
// With stragglers.hpp: that one asks who is slow, this one what to do with the speeds as they are.
// Its score is per sample, so shares do not hide a straggler, nor make one beyond the part of
// compute that they do not shorten. Where stragglers are replaced and a slot is free, the caller
// does not ask for other shares while one is being confirmed: the slow worker goes, and nobody has
// to be told twice. Where none can be replaced, its share follows its speed, down and up again.
//
// Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "autoscaler/samples.hpp"
#include "base/id_map.hpp"
#include "base/ids.hpp"
#include "base/time.hpp"

namespace elasticrun::autoscaler {

struct Member {
  WorkerId worker;
  std::string type;  // of its host: a newcomer is taken to be as fast as others of its type

  bool operator==(const Member&) const = default;
};

class Shares {
 public:
  // `pause` is the shortest time between two tries.
  explicit Shares(Duration pause);

  // ---- facts
  // A world steps, with these members in rank order, and shares by these weights (empty: equal).
  // True: the members of the one before, with other shares.
  bool world_changed(Generation generation, std::vector<Member> members, std::int64_t global_batch,
                     const std::vector<double>& weights);
  // Reports of other worlds, and the first one of each worker in a world, which may be of two,
  // count for nothing.
  void observe(const WorkerSample& sample);
  // All have reported; it says how long a whole step takes.
  void observe(const WorldSample& round);

  // ---- answers
  // For a world of these members: how many samples of a step each should compute, as weights; empty
  // where equal shares are as good. For the present members the present ones, or those that
  // better() has asked for.
  std::vector<double> weights(std::int64_t global_batch, const std::vector<Member>& members) const;
  // Why the present world should have other shares; nothing: it should not. Asked by who would give
  // them at once: it is not said again before the next pause is over.
  std::optional<std::string> better(Time now);

 private:
  using Samples = std::vector<std::int64_t>;  // of a step, by rank
  struct Pace {
    std::deque<double> reports;  // seconds of compute per sample, in this world
    std::int64_t steps = 0;      // in them
    bool primed = false;
    double known = 0;  // of worlds before; 0: nothing
  };
  struct Wanted {
    Samples samples;
    std::optional<double> former;  // a trial: what the slowest takes now, seconds
  };

  double own_cost(const Member& member) const;
  double error() const;
  std::vector<double> costs(const std::vector<Member>& members) const;
  bool measured() const;
  double rest() const;
  std::string ask_for(Wanted wanted, const std::string& why, Time now);
  Duration pause() const;

  Duration least_pause_;
  Generation generation_;
  std::vector<Member> members_;
  std::int64_t global_batch_ = 0;
  Samples samples_;  // of the present world
  IdMap<WorkerId, Pace> paces_;
  std::map<std::string, double> types_;  // seconds per sample, as last known
  double step_s_ = 0;
  bool news_ = false;  // since better() was asked
  std::optional<Wanted> wanted_;
  std::optional<Wanted> trial_;    // under way; its samples are the former ones
  Time look_at_ = Time::min();     // better() looks again
  Time not_before_ = Time::min();  // it asks again
  std::optional<Time> last_;       // try
  int tries_ = 0;                  // in a row
};

}  // namespace elasticrun::autoscaler
