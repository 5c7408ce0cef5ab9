// See restarts.hpp.
#include "job/core/workers/restarts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/exit_code.hpp"
#include "base/text.hpp"

namespace elasticrun::job::workers {
namespace {

constexpr std::size_t victims_named_max = 4;

// How likely it is that the end of this worker caused those of the others. The loss of a host is
// the cause of all that its peers report, and a worker that was killed did not fail by itself; but
// one that dies when told to end, of anything but SIGKILL, may only be bad at ending.
int weight(const RunEnd& end) {
  if (end.with_host) return 3;
  if (end.obeyed) return end.error_ns > 0 ? 1 : 0;  // it was already failing
  if (end.signal == SIGKILL || (end.signal != 0 && !end.told)) return 2;
  return end.signal != 0 || end.code != 0 ? 1 : 0;
}

}  // namespace

std::optional<int> Restarts::fixed_size() const {
  if (resizable_ || runs_ == 0) return std::nullopt;
  return first_size_;
}

bool Restarts::progressed(Time now) {
  if (std::exchange(makes_progress_, true)) return false;
  cost_ = now - idle_since_;
  return true;
}

void Restarts::run_begins(int size, Time now) {
  makes_progress_ = false;
  idle_since_ = std::min(idle_since_, now);
  ends_.clear();
  change_.clear();
  nothing_better();
  if (runs_++ == 0) first_size_ = size;
}

bool Restarts::may_follow(const RunEnd& end) const {
  return !end.hopeless && (resizable_ || max_ > 0);
}

// Of equal ends the first one counts, and where that one wrote why, the first one that wrote: what
// its peers met may let them exit before it.
const RunEnd& Restarts::culprit() const {
  const RunEnd* found = &*std::ranges::max_element(ends_, {}, weight);
  if (found->error_ns == 0) return *found;
  for (const RunEnd& end : ends_)
    if (weight(end) == weight(*found) && end.error_ns > 0 && end.error_ns < found->error_ns)
      found = &end;
  return *found;
}

std::string Restarts::victims_of(const RunEnd& culprit) const {
  std::vector<std::string> names;
  for (const RunEnd& end : ends_)
    if (&end != &culprit && weight(end) > 0) names.push_back(end.worker);
  if (names.empty()) return {};
  const std::size_t number = names.size();
  names.resize(std::min(number, victims_named_max));
  return fmt::format("{} failed with it: {}{}", counted(number, "other"), fmt::join(names, ", "),
                     number > names.size() ? ", ..." : "");
}

Restarts::Verdict Restarts::judge() {
  if (!change_.empty()) return {.again = true, .planned = true, .reason = change_};
  const RunEnd& cause = culprit();
  Verdict verdict{.reason = fmt::format("{} {}", cause.worker, cause.how),
                  .victims = victims_of(cause)};
  verdict.counted = !(cause.with_host && resizable_);
  verdict.again = !verdict.counted || (!cause.hopeless && count_ < max_);
  verdict.exit_code = cause.signal != 0 ? exit_code::signal_base + cause.signal : cause.code;
  if (cause.obeyed) verdict.exit_code = 1;  // the signal was ours; it failed before
  if (verdict.again && verdict.counted) ++count_;
  return verdict;
}

void Restarts::could_have(std::vector<SlotId> slots, Time now, Duration settle) {
  if (slots == could_) return;
  could_ = std::move(slots);
  change_at_ = now + settle;
}

void Restarts::nothing_better() {
  could_.clear();
  change_at_ = never;
}

}  // namespace elasticrun::job::workers
