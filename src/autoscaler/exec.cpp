// When the program is asked, and how its answer is used.
#include "autoscaler/exec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "autoscaler/decision_text.hpp"

namespace elasticrun::autoscaler {
namespace {

// The shortest pause between questions, so that the program is not run all the time where the
// settling time is very short or zero.
constexpr Duration least_settle = std::chrono::seconds(1);

Decision follow(const Advice& advice, int size) {
  std::string reason = advice.reason;
  if (advice.target != size)
    reason = fmt::format("{} from {} to {}: {}", direction(size, advice.target), size,
                         advice.target, reason.empty() ? "its program says so" : reason);
  else if (reason.empty())
    reason = fmt::format("staying at {}: its program says so", size);
  return decision(size, advice.target, std::move(reason));
}

}  // namespace

std::optional<std::string_view> Exec::program_of(std::string_view policy) {
  constexpr std::string_view prefix = "exec:";
  if (!policy.starts_with(prefix)) return std::nullopt;
  return policy.substr(prefix.size());
}

Decision Exec::decide(const Snapshot& snapshot, const Limits& limits, Time now) {
  const Subject present{snapshot.size, limits.sizes};
  if (!asked_ && now >= next_) {
    asked_ = present;
    question_ = Question{snapshot, limits, now};
    next_ = now + std::max(limits.settle, least_settle);
  }
  const bool answered = subject_ == present;
  Decision made = answered && advice_
                      ? follow(*advice_, present.size)
                      : decision(present.size, present.size,
                                 answered ? "its program gave no advice that can be followed"
                                          : "its program has not answered yet");
  made.again = asked_ ? never : next_;
  return made;
}

std::optional<Question> Exec::question() { return std::exchange(question_, std::nullopt); }

Result<void> Exec::advised(Result<Advice> answer) {
  if (!asked_) return {};
  subject_ = std::exchange(asked_, std::nullopt);
  advice_.reset();
  if (!answer) return answer.error();
  const std::vector<int>& sizes = subject_->sizes;
  if (answer->target != subject_->size && !std::ranges::binary_search(sizes, answer->target))
    return Error{
        fmt::format("asked for a size that cannot be had: {} is none of the sizes from {} "
                    "to {}",
                    answer->target, sizes.front(), sizes.back())};
  advice_ = std::move(*answer);
  return {};
}

}  // namespace elasticrun::autoscaler
