// Saves of the state: what is asked of the members, what they have written, and when one is given
// up. When one is due is for save_times.hpp to say.
//
// One save at a time. The members agree on the step by themselves (worker/core/votes.hpp); a save
// whose world ends before all parts are written is asked for again in the next world, under another
// number, so that no file of the one can be taken for a file of the other. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "job/core/course/kept_saves.hpp"
#include "job/core/course/save_times.hpp"
#include "job/core/terms/state_table.hpp"
#include "job/spec.hpp"
#include "wire/messages.hpp"

namespace elasticrun::job::course {

enum class SaveState { idle, wanted, asked, sealing };

inline constexpr std::array save_states{
    Named<SaveState>{SaveState::idle, "idle", "no save is under way"},
    Named<SaveState>{SaveState::wanted, "wanted", "the next world that steps is asked for a save"},
    Named<SaveState>{SaveState::asked, "asked",
                     "the members agree on a step, and write their parts of the state after it"},
    Named<SaveState>{SaveState::sealing, "sealing",
                     "all parts are written, and the save is being made whole"},
};

enum class SaveTurn { due, asked, world_ended, stopped, written, sealed, given_up };

inline constexpr std::array save_turns{
    Named<SaveTurn>{SaveTurn::due, "it is time"},
    Named<SaveTurn>{SaveTurn::asked, "the members were asked"},
    Named<SaveTurn>{SaveTurn::world_ended, "the world ended"},
    Named<SaveTurn>{SaveTurn::stopped, "the job is to stop after the next step"},
    Named<SaveTurn>{SaveTurn::written, "all parts are written"},
    Named<SaveTurn>{SaveTurn::sealed, "it is whole"},
    Named<SaveTurn>{SaveTurn::given_up, "it is given up"},
};

using SaveTransition = Transition<SaveState, SaveTurn>;

inline constexpr std::array save_transitions{
    SaveTransition{SaveState::idle, SaveTurn::due, SaveState::wanted},
    SaveTransition{SaveState::wanted, SaveTurn::asked, SaveState::asked},
    SaveTransition{SaveState::wanted, SaveTurn::given_up, SaveState::idle},
    SaveTransition{SaveState::asked, SaveTurn::world_ended, SaveState::wanted},
    SaveTransition{SaveState::asked, SaveTurn::stopped, SaveState::wanted},
    SaveTransition{SaveState::asked, SaveTurn::written, SaveState::sealing},
    SaveTransition{SaveState::asked, SaveTurn::given_up, SaveState::idle},
    SaveTransition{SaveState::sealing, SaveTurn::sealed, SaveState::idle},
    SaveTransition{SaveState::sealing, SaveTurn::given_up, SaveState::idle},
};

class Saves {
 public:
  explicit Saves(const JobSpec& spec);

  bool on() const { return !folder_.empty(); }
  const std::string& folder() const { return folder_; }
  SaveTimes& times() { return times_; }
  KeptSaves& kept() { return kept_; }
  const KeptSaves& kept() const { return kept_; }
  // As KeptSaves::ready. What an earlier call trains is remembered while its state may be saved:
  // the first worker begins the next call before the save of the last one is whole.
  std::string ready(const wire::TrainSpec& train);

  // ---- when
  bool is(SaveState state) const { return state_ == state; }
  bool under_way() const { return state_ != SaveState::idle; }
  // When one of the next three answers changes. Without a world that steps no save is due.
  Time wake_at(bool steps) const;
  // The time has come for a save while the job runs: it is under way from now on.
  void look_if_due(bool steps, Time now);
  // No worker steps after this step for a while, which may be long: a call of train has ended, or
  // workers are missing. So it is saved if that costs little beside the time since the last save;
  // `idle`: or beside the pause, as soon as that has been as long. Until steps_resume.
  void steps_pause(StepId step, bool idle, Time now);
  void steps_resume() { idle_.reset(); }
  // Before the job may lose all its workers: what is newer than the newest save is saved.
  void secure(StepId step, Time now);
  // The time limit comes near: the job should stop.
  bool limit_is_near(Time now) const { return now >= times_.stop_at(); }
  bool overdue(Time now) const { return now >= deadline_; }
  // Nobody is to blame for it: on_epoch, say, takes that long, and no step has ended.
  void wait_longer(Time now) { deadline_ = times_.save_ends_by(now); }
  // How long the save under way may still take.
  Duration left(Time now) const { return deadline_ - now; }

  // ---- stopping
  struct Stop {
    std::string what;           // asks for it: "SIGTERM"
    std::string why;            // "stopped by SIGTERM"
    int exit_code = 0;          // if the state cannot be saved
    bool time_is_up = false;    // not the user's wish: a batch system said so, or the time limit
    bool if_preempted = false;  // that is so only if the batch system wants the nodes back
  };
  // The job stops as soon as the state is saved. `trains`: more steps follow, so what is being
  // saved already is not the end.
  void stop(Stop stop, bool trains, Time now);
  // A signal says so, while the job stops. At the time limit it is the batch system's own.
  void user_wants_the_end(Time now);
  bool stopping() const { return stop_.has_value(); }
  const Stop& why_stop() const { return *stop_; }

  // ---- one save
  // The members may be asked from this time on.
  Time ask_at() const { return ask_at_; }
  // What to send to the members of the world; `alone`: to one worker, for there is no world.
  wire::Save ask(Time now, bool alone = false);
  // The members have been asked, and no step is known to have ended since then, in which they could
  // agree. Reports of steps come at most this late.
  bool waits_for_step(Duration late) const {
    return is(SaveState::asked) && times_.newest_step() <= attempt_.asked_at + late;
  }
  // The world has ended: what is not written by now is asked for again. Returns the number of a
  // save that has no use any more; 0: none.
  std::int64_t world_ended();
  // Whether this part is of the same arrays as those that other members have written. The ranks of
  // one save split its bytes by what each of them lists.
  bool agrees(const wire::Saved& part) const;
  // A member has written its part. True: it was the last one.
  bool written(const wire::Saved& part, Time now);
  std::int64_t number() const { return attempt_.number; }
  // Of the save that is being made whole, as far as it is known here.
  wire::saved::Manifest manifest(const std::vector<std::string>& argv) const;
  // It is whole, and lies in this folder.
  struct Report {
    wire::saved::Manifest manifest;
    std::uint64_t bytes = 0;
    Duration held{};    // longest time for which it held a member up
    Duration took{};    // since it was asked for
    bool last = false;  // no step follows it
    bool alone = false;
  };
  Report sealed(std::string path, wire::saved::Manifest manifest, Time now);
  // It is given up, and the next one comes in its time.
  void give_up(Time now);
  // The save of a stop has failed. False: it is not tried again.
  bool try_again(Time now);
  // Nobody holds the state any more: `why`. False: no save is being made whole, which could be
  // waited for.
  bool wait_for_last(const std::string& why);
  // The reason, while it is waited for.
  const std::optional<std::string>& lost() const { return attempt_.lost; }

 private:
  void turn(SaveTurn happening) { state_ = next_in(save_transitions, state_, happening); }
  void begin(Time now);

  const std::string folder_;
  SaveTimes times_;
  KeptSaves kept_;

  struct Attempt {
    std::int64_t number = 0;
    bool last = false;   // it is that of a stop
    bool alone = false;  // one worker writes it
    Time asked_at{};
    Time written_at{};
    std::map<std::int32_t, wire::Saved> parts;  // by rank
    std::optional<std::string> lost;            // why no worker holds the state
  };

  // To be saved if no worker steps until then.
  struct Idle {
    StepId step;
    Time save_at{};
  };

  std::optional<Idle> idle_;
  SaveState state_ = SaveState::idle;
  Attempt attempt_;  // under way, or the last one
  std::int64_t next_number_;
  Time ask_at_ = at_once;
  int attempts_ = 0;  // at the save of the stop
  Time deadline_ = never;
  std::optional<Stop> stop_;
};

using elasticrun::to_text;

constexpr std::string_view to_text(SaveState state) { return name_in(save_states, state); }

}  // namespace elasticrun::job::course
