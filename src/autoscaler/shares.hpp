// Divides the samples of a step among workers of different speed, so that all finish together.
//
// A step ends when its slowest member finishes: on mixed hosts, equal shares make the fast ones
// wait. Shares in proportion to speed end that (HetSeq, Ding et al. 2021; VirtualFlow, Or et al.
// 2022). These systems take the speeds from the user or from an earlier profile; here they are
// measured while the job trains, as samples per second of a worker's own compute. Compute has a
// part that no share shortens, so a speed holds only near the share it was measured at. But new
// shares are measured again, and where they converge all members finish together, whatever the law
// of compute time is. Fitting that law to two shares would save a round or two, but with two shares
// close together and some noise almost any law fits.
//
// Shares must not oscillate. New shares are wanted only when each member has been measured in this
// world, the slowest is slow by more than the measurement error, and the new shares shorten the
// whole step by 5 %. Each change is a trial: when the slowest member takes no less time afterwards
// (a share just above what a device computes at once takes a second call), the former shares
// return. Every further try doubles the pause before the next one, until no try has been needed for
// several pauses.
//
// Difference to stragglers.hpp: Stragglers finds slow workers, Shares adapts to the speeds as they
// are. A straggler's score is per sample, so shares do not hide a straggler, nor create one except
// through the part of compute that they do not shorten. Where stragglers are replaced and a slot is
// free, the caller does not ask for other shares while a straggler is being confirmed: that worker
// will go, and the world then changes only once. Where it cannot be replaced, its share follows its
// speed, down and up again.
//
// No clock, thread or I/O.
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
  std::string type;  // its host's type; a newcomer is assumed to be as fast as others of its type

  bool operator==(const Member&) const = default;
};

class Shares {
 public:
  // `pause` is the shortest time between two tries.
  explicit Shares(Duration pause);

  // ---- facts
  // A new world begins to step, with these members in rank order and shares by these weights
  // (empty: equal). Returns true if it has the members of the one before, with other shares.
  bool world_changed(Generation generation, std::vector<Member> members, std::int64_t global_batch,
                     const std::vector<double>& weights);
  // Takes a worker's report. Reports of other worlds are ignored, and so is each worker's first one
  // in a world, which may cover steps of two worlds.
  void observe(const WorkerSample& sample);
  // Takes a complete round, for the time that a whole step takes.
  void observe(const WorldSample& round);

  // ---- answers
  // For a world of these members: the number of samples of a step that each should compute, as
  // weights; empty where equal shares are as good. For the present members: the present shares, or
  // those that better() has asked for.
  std::vector<double> weights(std::int64_t global_batch, const std::vector<Member>& members) const;
  // The reason why the present world should have other shares; nothing if it should not. The caller
  // must apply them at once: the answer is not repeated before the next pause is over.
  std::optional<std::string> better(Time now);

 private:
  using Samples = std::vector<std::int64_t>;  // samples of a step, by rank
  struct Pace {
    std::deque<double> reports;  // seconds of compute per sample, in this world
    std::int64_t steps = 0;      // steps in these reports
    bool primed = false;         // the first report in this world has been skipped
    double known = 0;            // seconds per sample in earlier worlds; 0: unknown
  };
  struct Wanted {
    Samples samples;
    std::optional<double> former;  // for a trial: seconds that the slowest member takes without it
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
  Samples samples_;  // the shares in the present world
  IdMap<WorkerId, Pace> paces_;
  std::map<std::string, double> types_;  // seconds per sample, as last known
  double step_s_ = 0;
  bool news_ = false;  // a round has arrived since the last look in better()
  std::optional<Wanted> wanted_;
  std::optional<Wanted> trial_;    // the trial under way; its samples are the former ones
  Time look_at_ = Time::min();     // better() does nothing before this time
  Time not_before_ = Time::min();  // better() starts no new try before this time
  std::optional<Time> last_;       // time of the last try
  int tries_ = 0;                  // tries in a row, beyond the first
};

}  // namespace elasticrun::autoscaler
