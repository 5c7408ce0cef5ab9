// Checks how long no worker steps although workers could. A rule about a single moment cannot see
// that, such as worlds that form and break again and again, each of them for a good reason.
#pragma once

#include <map>
#include <set>

#include "base/ids.hpp"
#include "base/time.hpp"

namespace elasticrun::simulate::faults {

class Stepping {
 public:
  // Longer than every deadline and all pauses between attempts that can follow each other.
  static constexpr Duration together_within = std::chrono::seconds(6);
  static constexpr Duration inside_within = std::chrono::seconds(30);
  // What faults of newcomers may cost the others: the longest pause, and the share of their time.
  static constexpr Duration newcomers_at_once = std::chrono::seconds(1);
  static constexpr double newcomers_share = 0.5;

  // `only_newcomers`: in this run faults strike only newcomers.
  explicit Stepping(bool only_newcomers) : only_newcomers_(only_newcomers) {}

  // Any worker has committed a step.
  void committed(Time now);
  void newcomer_struck(Time now);
  // A worker saves the state before the job ends: no step follows, and nobody waits for one.
  void stops();
  // From now on nothing goes wrong any more.
  void healed(Time now) { quiet_since_ = now; }
  // Called regularly. `could`: enough healthy workers are in train. `outside`: the workers among
  // them that are ready and wanted but not members.
  void look(bool could, const std::set<WorkerId>& outside, Time now);

 private:
  bool healed() const { return quiet_since_ != never; }
  void check_newcomers(Time now) const;

  bool only_newcomers_;
  Time last_commit_ = never;  // never: no commit yet
  Time struck_at_ = never;    // when the first newcomer was struck
  Duration stood_{};          // since struck_at_, the time lost in pauses longer than a step
  Time quiet_since_ = never;  // since then workers could have stepped, and none has; or never
  std::map<WorkerId, Time> outside_since_;
};

}  // namespace elasticrun::simulate::faults
