// What follows from members whose registered state differs (worker/training/divergence.hpp): a text
// for the user, once per world, and the end of the job when it is unknown which state is right, or
// when a repaired worker differs again and again. Pure.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "wire/messages.hpp"

namespace elasticrun::job::workers {

class Divergences {
 public:
  struct Verdict {
    std::string words;
    bool ends = false;
  };

  // The job ends when a worker differs this many times in a row, each time within `few_looks`
  // comparisons of the whole state since the time before. Until then the worker is repaired.
  static constexpr int times_max = 3;
  static constexpr std::int64_t few_looks = 4;

  // `names` are those of the odd workers, whose state differs from the majority's; `steps_a_look`
  // is the number of steps in which the whole state is compared once. Nothing when another member
  // of that world has reported the difference already.
  std::optional<Verdict> hear(const wire::Diverged& message, const std::vector<std::string>& names,
                              std::int64_t steps_a_look) {
    if (std::exchange(told_, message.generation) == message.generation) return std::nullopt;
    const std::string who = names.empty() ? "the members' states differ from each other"
                                          : fmt::format("the state of {} differs from the others'",
                                                        fmt::join(names, ", "));
    const std::string what = fmt::format("after {} {} somewhere in {}",
                                         counted(message.step.value, "step"), who, message.where);
    if (message.mixed)
      return Verdict{what +
                     "; nothing is done about it, for machines of several kinds differ in "
                     "the last bits"};
    if (names.empty())
      return Verdict{
          what +
              ", and none is in the majority; do not register state that each worker has "
              "for itself, and have all workers apply equal rates",
          true};
    if (again_and_again(message, few_looks * steps_a_look))
      return Verdict{what +
                         ", for the third time; register all state that apply changes, or do "
                         "without that machine if its memory fails",
                     true};
    return Verdict{what +
                   "; it is replaced by theirs. Memory that fails does this, and state that "
                   "is not registered"};
  }

 private:
  // True: a worker's state differed for the times_max-th time in a row, each time within
  // `few_steps` steps of the time before.
  bool again_and_again(const wire::Diverged& message, std::int64_t few_steps) {
    bool often = false;
    for (const WorkerId worker : message.odd) {
      auto& [times, last] = repairs_[worker];
      times = message.step.value - last.value <= few_steps ? times + 1 : 1;
      last = message.step;
      often |= times >= times_max;
    }
    return often;
  }

  struct Repairs {
    int times = 0;  // in a row
    StepId last;
  };
  Generation told_;
  std::map<WorkerId, Repairs> repairs_;
};

}  // namespace elasticrun::job::workers
