// One controller's case: hosts that come and go, workers that report, and the decisions, with the
// job's own table of workers and all of src/autoscaler. Membership, agents and messages are left
// out: here a change succeeds, fails or is dropped by chance.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autoscaler/autoscaler.hpp"
#include "autoscaler/shares.hpp"
#include "autoscaler/stragglers.hpp"
#include "base/rng.hpp"
#include "job/core/workers/staffing.hpp"
#include "launcher/hosts/plan.hpp"
#include "policy_cases.hpp"

namespace elasticrun::sim {

// What does not change during a case.
struct Setting {
  autoscaler::Options options;
  launcher::hosts::Limits limits;
  launcher::hosts::Unit unit = launcher::hosts::Unit::slot;
  int start = 0;  // 0: as many as there are slots
  int turns = 0;
  Duration report{};  // between two reports of a worker
  double step_s = 0;  // of one worker with an equal share, and for each further worker
  double sync_s = 0;
  double noise = 0;
  // Probabilities, for each turn or each report.
  double mishap = 0;
  double garbled = 0;
  double silent = 0;
  double change_fails = 0;
  double start_fails = 0;
  bool tells_noise = false;
  bool tells_work = false;
};

Setting draw_setting(Rng& rng);
std::string describe(const Setting& setting);
// A report as a worker with an overflowed counter or a stopped clock sends it, or one from an
// earlier world.
void garble(autoscaler::WorkerSample& sample, Rng& rng);
// "3 4 7"
std::string names(const std::vector<WorkerId>& workers);
// What the program of the policy exec prints, good and bad.
Result<std::string> print_advice(const autoscaler::Question& question, Rng& rng);

class Stage {
 public:
  Stage(std::uint64_t seed, Tell tell);
  void run();

 private:
  struct Host {
    HostId id;
    std::string name;  // two hosts may have the same
    std::string type;
    int slots = 1;
    double price = 0;
    double speed = 1;
    bool listed = true;
    std::optional<Time> dies_at;  // it has been given notice
  };

  template <class... Values>
  void say(std::string_view text, const Values&... values) const {
    if (!tell_) return;
    const double s = seconds(now_ - Time{});
    tell_(fmt::format("{:9.1f} s  {}", s, fmt::format(fmt::runtime(text), values...)));
  }

  // ---- mishaps
  void mishap();
  void new_host();
  void edit(Host& host);
  void give_notice(Host& host);
  void host_dies(Host& host);
  void worker_dies();
  void program_speaks();
  void end_notices();
  Host& any_host() { return hosts_[rng_.below(hosts_.size())]; }
  const Host& host_of(WorkerId worker) const;
  void lose(const std::vector<WorkerId>& lost);

  // ---- what a controller does
  void slots_changed();
  void round();
  void hear(const autoscaler::WorkerSample& sample);
  void answer();
  void decide();
  void staff();
  void start_missing(const std::vector<job::SlotId>& wanted);
  void end_starts();
  bool propose(const std::vector<job::SlotId>& wanted);
  void form(std::vector<WorkerId> members);
  void settle(bool settled);
  void replace_stragglers();
  std::vector<autoscaler::Member> typed() const;
  autoscaler::WorkerSample report_of(std::size_t rank, double step_s);
  int size() const { return static_cast<int>(members_.size()); }

  // ---- what must hold
  void check(const autoscaler::Decision& made) const;
  void check_target(int target) const;
  void check(const BatchPlan& plan, int size) const;
  void check_members(const std::vector<WorkerId>& members) const;
  void check_money();
  void check_question(const autoscaler::Question& question) const;

  Tell tell_;
  Rng rng_;
  Setting setting_;
  autoscaler::Autoscaler scaler_;
  autoscaler::Shares shares_;
  autoscaler::Stragglers stragglers_{autoscaler::StragglerRule{}};
  job::workers::Slots slots_;
  job::workers::Workers workers_;
  std::vector<Host> hosts_;
  std::vector<int> sizes_;  // possible with the hosts that are listed

  Time now_{};
  std::vector<WorkerId> members_;  // in rank order
  std::vector<double> parts_;      // of the batch, by rank
  std::map<WorkerId, Time> ready_at_;
  int target_ = 0;
  Generation generation_;
  std::int64_t global_batch_ = 0;
  std::int64_t left_ = 0;
  bool unsettled_ = false;
  Time quiet_since_{};
  bool lost_ = false;  // the last member is gone, and the state with it
  double spent_ = 0;
  std::string last_reason_;
  std::optional<autoscaler::Question> asked_;
};

}  // namespace elasticrun::sim
