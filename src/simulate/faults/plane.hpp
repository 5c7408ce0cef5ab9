// Simulated groups and their collectives, which behave as real ones do: a collective completes for
// all members or for none, but when a member dies or aborts in the middle, some members get the
// result and others an error. A link that loses packets raises no error: the members at its ends
// wait, and can report for which peer.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/ids.hpp"
#include "base/rng.hpp"
#include "simulate/faults/links.hpp"
#include "simulate/queue.hpp"
#include "wire/messages.hpp"
#include "worker/collective/group.hpp"
#include "worker/core/votes.hpp"

namespace elasticrun::simulate::faults {

class Plane {
 public:
  // The result of a call: the sums over all members, or, if it broke, none and the peers blamed.
  using Votes = worker::core::Votes;
  struct Ended {
    std::optional<Votes> sum;
    std::vector<worker::collective::PeerTrouble> troubles;
  };
  using Done = std::function<void(const Ended&)>;
  // Runs when the last member has arrived and nothing holds the call up.
  using Complete = std::function<void()>;

  Plane(Queue& queue, Rng& rng) : queue_(queue), rng_(rng) {}

  // `size` is the number of members as this worker knows it.
  void create(const wire::World& world, WorkerId worker, int size);
  // `done` runs when all peers are connected, or the limit has passed.
  void connect(Generation generation, WorkerId worker, Duration limit, Done done);
  // Transfers the state from its holders; `done` runs when this worker's part in that is finished.
  void transfer(Generation generation, WorkerId worker, Complete complete, Done done);
  // Every member calls the same reductions in the same order; `index` names the call, from 0.
  void reduce(Generation generation, WorkerId worker, int index, const Votes& votes,
              Complete complete, Done done);
  // Whether this worker has a group of that generation that was not aborted or dropped.
  bool has_group(WorkerId worker, Generation generation) const;
  void abort(WorkerId worker, Generation up_to);
  void drop(WorkerId worker, Generation generation);
  void died(WorkerId worker);

  // What holds up the groups of this worker at present.
  std::vector<worker::collective::HeldUp> held_up(WorkerId worker) const;
  bool has_lost_link(WorkerId worker) const;

  const Links& links() const { return links_; }
  // Changes the links; calls that waited for a lost link may go on now.
  void change_links(const std::function<void(Links&)>& change);

 private:
  static constexpr int connecting = 0, moving_state = 1, first_reduction = 2;
  struct End {
    bool gone = false;  // aborted, dropped or dead
    int index = 0;
    Time since{};
    Done pending;
  };
  struct Call {
    std::set<WorkerId> arrived;
    Votes sum;
    Complete complete;
    bool completed = false;
    std::set<WorkerId> served;  // members whose results are on the way
  };
  struct Group {
    wire::World world;
    std::size_t size = 0;
    std::map<WorkerId, End> ends;
    std::map<int, Call> calls;
  };
  // What holds up one rank in a call.
  struct Obstacle {
    bool blocked = false;
    std::vector<int> waits_for;  // ranks
    std::vector<int> lost;       // ranks that do not receive what is sent to them
  };

  void call(Generation generation, WorkerId worker, int index, const Votes& votes,
            Complete complete, Done done);
  void settle(Generation generation, int index);
  void leave(Generation generation, Group& group, WorkerId worker, bool alive);
  void serve(Generation generation, Call& call, WorkerId worker, int index);
  void deliver(Generation generation, WorkerId worker, int index);
  void fail(Generation generation, WorkerId worker, int index,
            std::vector<worker::collective::PeerTrouble> why);
  void out_of_time(Generation generation, WorkerId worker);
  Obstacle obstacle(const Group& group, const Call& call, int rank, int index) const;
  Obstacle unconnected(const Group& group, const Call& call, int rank) const;
  Obstacle in_transfer(const Group& group, int rank) const;
  Obstacle in_ring(const Group& group, int rank) const;
  std::vector<worker::collective::PeerTrouble> hung_up(const Group& group) const;
  bool somebody_gone(const Group& group) const;
  Duration soon(int most_us);

  Queue& queue_;
  Rng& rng_;
  Links links_;
  std::map<Generation, Group> groups_;
};

}  // namespace elasticrun::simulate::faults
