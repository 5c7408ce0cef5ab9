// How long nobody steps although somebody could: what a rule about one moment cannot see, as worlds
// that form and break again and again, each of them for a good reason.
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
  // What the trouble of newcomers may cost the others: at once, and of their time.
  static constexpr Duration newcomers_at_once = std::chrono::seconds(1);
  static constexpr double newcomers_share = 0.5;

  // `only_newcomers`: nothing else goes wrong in this run.
  explicit Stepping(bool only_newcomers) : only_newcomers_(only_newcomers) {}

  // Somebody has committed a step.
  void committed(Time now);
  void newcomer_struck(Time now);
  // From now on nothing goes wrong any more.
  void healed(Time now) { quiet_since_ = now; }
  // Now and then. `could`: enough workers that are well are in train. `outside`: who of them is
  // ready and wanted, and no member.
  void look(bool could, const std::set<WorkerId>& outside, Time now);

 private:
  bool healed() const { return quiet_since_ != never; }
  void check_newcomers(Time now) const;

  bool only_newcomers_;
  Time last_commit_ = never;  // never: there was none yet
  Time struck_at_ = never;
  Duration stood_{};          // since then, in pauses that are no steps
  Time quiet_since_ = never;  // since then somebody could have stepped, and nobody has
  std::map<WorkerId, Time> outside_since_;
};

}  // namespace elasticrun::simulate::faults
