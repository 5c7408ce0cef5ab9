// What is reported about a job at its end: its worlds, why each of them formed, and what it cost.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"

namespace elasticrun::job::course {

class Summary {
 public:
  // That many workers have existed since the last call.
  void count_time(std::size_t workers, Time now);
  enum class Change { planned, forced, replanned };
  // One that was only planned again counts as the one before.
  void world(int size, StepId from, const std::string& why, Change change);
  // A step is committed.
  void committed(StepId step) { newest_ = std::max(newest_, step); }

  // Training is over, until a member trains again.
  void trained() { trained_ = true; }
  void trains_again() { trained_ = false; }
  bool has_trained() const { return trained_; }

  // This decision was logged; a world that forms because of it need not repeat it.
  void told(std::string decision) { told_ = std::move(decision); }
  bool was_told(const std::string& decision) const { return decision == told_; }
  // The backend that carries the group now. True: it is not the one that the user assumes (the last
  // one, or gloo at first).
  bool other_backend(const std::string& backend) {
    return !backend.empty() && std::exchange(backend_, backend) != backend;
  }

  int worlds() const { return worlds_; }
  StepId newest() const { return newest_; }
  Time began() const { return began_; }
  // In worker seconds.
  double worker_time() const { return worker_s_; }
  // The number of steps, as a text, but for those before the save that the job went on from. As far
  // as is known: exact when the workers have ended in order.
  std::string steps_made() const;
  // Number of workers of the last world; 0: there was none.
  int size() const { return world_lines_.empty() ? 0 : world_lines_.back().size; }
  // One line for each world; none for a job whose world never changed. `at_the_end` is the last
  // reason why the size stayed; empty: there is none to report.
  std::vector<std::string> story(const std::string& at_the_end) const;
  // The text for the last line on the terminal; empty when no world formed.
  std::string words(Time now) const;

 private:
  struct WorldLine {
    int size = 0;
    StepId from;
    std::string why;
  };
  static constexpr std::size_t world_lines_max = 12;

  Time began_{};
  Time counted_{};  // worker time is summed up to here
  double worker_s_ = 0;
  StepId first_{0};  // what the first world began with
  StepId newest_ = no_state;
  bool trained_ = false;
  int worlds_ = 0, planned_ = 0, forced_ = 0;
  std::string told_;
  std::string backend_ = "gloo";
  std::deque<WorldLine> world_lines_;  // the last worlds, in order
};

}  // namespace elasticrun::job::course
