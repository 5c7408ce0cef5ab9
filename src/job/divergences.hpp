// What follows from members whose registered state differs (worker/divergence.hpp): words for a
// person, once a world, and the end of the job where nobody knows which state is right. Pure.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wire/messages.hpp"

namespace elasticrun::job {

class Divergences {
 public:
  struct Verdict {
    std::string words;
    bool ends = false;
  };
  using NameOf = std::function<std::string(WorkerId)>;

  // Nothing where another member has reported it already.
  std::optional<Verdict> hear(const wire::Diverged& letter, const NameOf& name_of) {
    if (std::exchange(told_, letter.generation) == letter.generation) return std::nullopt;
    std::vector<std::string> names;
    for (const WorkerId worker : letter.odd) names.push_back(name_of(worker));
    const std::string who = names.empty() ? "the members' states differ from each other"
                                          : fmt::format("the state of {} differs from the others'",
                                                        fmt::join(names, ", "));
    const std::string what =
        fmt::format("after {} steps {} somewhere in {}", letter.step.value, who, letter.where);
    if (letter.mixed)
      return Verdict{what +
                     "; nothing is done about it, for machines of several kinds differ in "
                     "the last bits"};
    if (names.empty())
      return Verdict{what +
                         ", and nobody knows which is right; do not register state that each "
                         "worker has for itself, or compare nothing with --verify-state off",
                     true};
    return Verdict{what +
                   "; it is replaced by theirs. Memory that fails does this, and state that "
                   "is not registered"};
  }

 private:
  Generation told_;
};

}  // namespace elasticrun::job
