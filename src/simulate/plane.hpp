// Groups and their collectives as they really behave: all or nobody completes one, but who dies or
// aborts in the middle leaves some with the result and some with an error.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>

#include "base/ids.hpp"
#include "base/rng.hpp"
#include "simulate/queue.hpp"

namespace elasticrun::simulate {

class Plane {
 public:
  // A collective ends with the sum of what all put in, or broken (nullopt).
  using Done = std::function<void(std::optional<double> sum)>;
  // Runs at the moment at which the last member has arrived.
  using Complete = std::function<void()>;

  Plane(Queue& queue, Rng& rng) : queue_(queue), rng_(rng) {}

  void create(Generation generation, WorkerId worker, int size);
  // Every member calls the same collectives in the same order; `index` names the call.
  void collective(Generation generation, WorkerId worker, int index, double value,
                  Complete complete, Done done);
  void abort(WorkerId worker, Generation up_to);
  void drop(WorkerId worker, Generation generation);
  void died(WorkerId worker);

 private:
  struct End {
    bool gone = false;  // aborted, dropped or dead
    int index = 0;
    Done pending;
  };
  struct Call {
    std::set<WorkerId> arrived;
    double sum = 0;
    bool complete = false;
  };
  struct Group {
    std::size_t size = 0;
    std::map<WorkerId, End> ends;
    std::map<int, Call> calls;
  };

  void leave(Generation generation, Group& group, WorkerId worker, bool alive);
  void deliver(Generation generation, WorkerId worker, int index);
  void fail(Generation generation, WorkerId worker, int index);
  bool somebody_gone(const Group& group) const;
  Duration soon(int most_us);

  Queue& queue_;
  Rng& rng_;
  std::map<Generation, Group> groups_;
};

}  // namespace elasticrun::simulate
