// The steps of one call of train, as a loop takes them: next, compute, reduce, apply, commit, until
// the samples are used. Both train() and a program's own loop (elasticrun_next) are such a loop.
//
// A step that a change of the world cuts short has changed no registered state, so next() begins it
// again from the present progress, with the same samples, in the next world.
//
// An epoch has ended when the first step of the next one commits, or all members have reported that
// they are done. A world that forms before that tells the epoch's end again, on every member, for
// the rank that was to save something may be gone. So the program must not change registered state
// there: some members would make the change and others not, or make it twice.
//
// With options.epoch_steps the end of an epoch is a step of its own, without samples: it is reduced
// and committed as others are, and told until it is. Until then the cursor stands at the end. The
// program may reduce figures of its own before it. All ranks must make the same calls there, and
// each call is compared first: otherwise one rank's sum would meet another one's step.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "worker/control/world_session.hpp"
#include "worker/core/sampler.hpp"
#include "worker/state/fingerprint.hpp"
#include "worker/state/state_watch.hpp"
#include "worker/training/divergence.hpp"
#include "worker/training/gradient_reduction.hpp"
#include "worker/training/step.hpp"

namespace elasticrun::worker::training {

// Who is told the ends of epochs, for the message when it does wrong there; empty: nobody.
using EpochListener = std::string;

class Steps {
 public:
  // The session's table is sealed.
  explicit Steps(control::WorldSession& session);
  ~Steps();
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  // Before begin(): enters a world, and returns the epoch in which the next call of train goes on
  // there, or every_epoch when the world has finished that call, or ends it now because it has no
  // epoch left. What is not in `options` the world learns from begin(). Throws Stop.
  static constexpr std::int64_t every_epoch = std::numeric_limits<std::int64_t>::max();
  std::int64_t enter(const elasticrun_train_options& options);
  // These throw Stop. A call of train begins, and ends: next() has said `over`, or the loop is
  // left. The caller has checked the options.
  void begin(const elasticrun_train_options& options, EpochListener listener);
  void end() noexcept;

  // What the program does now. piece: compute the samples of step(), which may be none; after the
  // last piece of a step reduce() follows, after another one next(). epoch_end: step().epochs_done
  // epochs are over; evaluate, save, print. Blocks until this worker is in a world.
  enum class Next { piece, epoch_end, over };
  Next next();
  elasticrun_step& step() { return *step_; }
  bool is_last_piece() const { return piece_ + 1 >= part_.pieces.size(); }
  // After the last piece, or the end of an epoch that is a step: gradients and buffers become the
  // mean over the global batch, and step() has the totals. False: the step does not happen, and
  // nothing of it is left; next() follows.
  bool reduce();
  // At the end of an epoch that is a step, before its reduce(). False: it did not happen, the
  // memory holds anything, and reduce() will say so, too.
  bool all_reduce(void* data, collective::DataType type, std::size_t count);
  bool barrier();
  // After reduce, when the program has applied it.
  void commit();
  // The program gives up; this worker is out of the world.
  [[noreturn]] void fail(elasticrun_status status, const std::string& why);

  // Writes at most `count` samples of this worker's coming steps, if the world stays as it is, and
  // returns their number.
  std::size_t upcoming(std::uint64_t* samples, std::size_t count) const;
  // The samples of the piece that next() gives after `ahead` others, if the world stays as it is;
  // nothing when the epoch ends before.
  std::optional<std::vector<std::uint64_t>> upcoming_piece(std::size_t ahead) const;
  // Between next() and commit(), or the end of a step that does not happen.
  bool in_step() const { return state_ == State::computes || state_ == State::applies; }
  bool computes() const { return state_ == State::computes; }
  bool applies() const { return state_ == State::applies; }
  bool at_end_step() const { return state_ == State::at_epoch_end && options_.epoch_steps != 0; }

 private:
  enum class State { outside, between, at_epoch_end, computes, applies };
  // This worker's part of one step.
  struct Part {
    core::Range range;                 // places of the whole step
    core::Range own;                   // places of this worker's share
    std::vector<std::int64_t> pieces;  // number of samples in each of them
    bool first_of_epoch = false, last_of_epoch = false;
  };
  struct EpochEnd {
    Generation generation;
    std::int64_t call = 0, epochs = 0;
    bool operator==(const EpochEnd&) const = default;
  };

  void make_ready(const elasticrun_train_options& options);
  void begin_call();
  bool begin_step();
  bool survives(const std::function<void()>& work);
  elasticrun_step& next_place();
  elasticrun_step& new_step();
  void begin_piece();
  void end_piece();
  void end_compute();
  bool epoch_ends() const;
  bool at_end() const;
  bool begin_end();
  bool collective(const std::string& call,
                  const std::function<void(collective::Group&)>& operation);
  void agree_on_call(collective::Group& group, const std::string& call);
  // The step under way is that at the end of an epoch.
  bool is_end() const { return part_.range.count() == 0; }
  Next tell_epoch_end();
  void leave_epoch_end();
  void discard();
  void stop_buckets();
  Part part_of(const core::Progress& progress) const;
  const core::Permutation& order(std::int64_t epoch);
  void explain_step();
  void check_state();
  core::Votes reduce_all();
  double gain() const;
  void weigh_noise();
  void keep_noise(core::Progress& next);
  bool has_samples();
  void check_agreement(collective::Group& group);
  void agree_on_names(collective::Group& group);

  control::WorldSession& session_;
  Reduction reduction_;
  Divergence divergence_;
  state::StateWatch watch_;
  elasticrun_train_options options_{};
  EpochListener listener_;
  std::int64_t call_ = 0;  // number of this call of train, from 1
  State state_ = State::outside;
  bool passed_ = false;                           // the world has finished this call already
  bool stays_ = false;                            // after a commit: no change of the world is due
  bool committed_ = false;                        // a save may be due
  std::optional<EpochEnd> ended_;                 // the epoch end that was told last
  bool end_fails_ = false;                        // it is not reduced any more, but told again
  std::optional<state::Fingerprint> before_end_;  // the state when it was told
  std::optional<state::Fingerprint> ended_with_;  // the state when the last call of train ended
  Generation explained_;                          // the world whose first step was reported
  std::optional<std::pair<Generation, std::int64_t>> agreed_;  // world and call last checked
  Part part_;
  std::size_t piece_ = 0;  // the present one, by its place in part_.pieces
  // Each piece of a step has its own place for a while, so that a gradient that is reported late is
  // not taken for one of a later piece. Their number is in elasticrun-worker(3).
  std::array<elasticrun_step, 64> ring_;
  std::size_t turn_ = 0;
  elasticrun_step* step_ = &ring_[0];
  core::NoiseScale noise_;              // the estimate; includes this step after its reduction
  std::vector<std::uint64_t> samples_;  // sample indices of this worker's share
  std::optional<core::Permutation> order_;
  std::uint64_t order_seed_ = 0;
  std::int64_t order_epoch_ = -1;
  Time begun_{}, piece_begun_{}, committed_at_{};
  Duration between_{};  // the program's own time before this step, since the last one
  control::StepMeter::StepCost cost_;
};

}  // namespace elasticrun::worker::training
