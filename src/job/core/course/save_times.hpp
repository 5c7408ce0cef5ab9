// When the state should be saved: every so often, before the time limit, and where long work
// follows. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.hpp"
#include "job/spec.hpp"

namespace elasticrun::job::course {

class SaveTimes {
 public:
  explicit SaveTimes(const JobSpec& spec)
      : saving_(spec.saving), timeout_(spec.deadlines.save_timeout) {}

  // ---- what happens
  // The job begins, and with it its time limit; a world has formed, and saves are due from then on.
  void job_began(Time now) { began_ = now; }
  void workers_began(Time now);
  void world_formed(Time now);
  // A step has been committed.
  void stepped(Time now);
  // A save begins, and none is due until one of the next two.
  void save_begins(Time now);
  // It is whole. Its members were busy with it for the time `writing`, at most, and `taking` is how
  // long it took in all, without their wait for a step.
  void save_ended(Duration writing, Duration taking, Time now);
  void save_failed(Time now);
  // The job stops: nothing is due any more.
  void stop();

  // ---- what is due
  // No worker has joined through the library for a while, and saves are of those that do. Once.
  Time doubt_at() const { return doubt_at_; }
  void doubted() { doubt_at_ = never; }
  Time save_at() const;
  // The time limit is near: the job should stop.
  Time stop_at() const;
  // When a save that begins now is given up; that of a stop leaves time for the workers to end in.
  Time save_ends_by(Time now) const;
  Time stop_ends_by(Time now) const;
  // True: the time limit is over.
  bool is_up(Time now) const;
  // How long a save of this size keeps its members busy: an estimate.
  Duration writing(std::uint64_t bytes) const;
  // It costs little beside the time since the last one.
  bool is_cheap(std::uint64_t bytes, Time now) const;
  // When the last save began, and when a step was last committed.
  Time save_began() const { return save_began_; }
  Time newest_step() const { return stepped_.value_or(Time{}); }

 private:
  bool limited() const { return saving_.time_limit > Duration::zero() && began_ != never; }
  Duration margin() const;
  Time precaution_at() const;

  const JobSpec::Saving saving_;
  const Duration timeout_;
  Time began_ = never;
  Time due_ = never;
  Time doubt_at_ = never;
  Time save_began_{};   // the last one, or else the first world
  Duration longest_{};  // of all saves so far
  Duration longest_writing_{};
  std::optional<Time> stepped_;  // the newest step
  Duration longest_pause_{};     // from one step to the next
  bool took_precaution_ = false;
  bool stops_ = false;
};

}  // namespace elasticrun::job::course
