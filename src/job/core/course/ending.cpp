// See ending.hpp.
#include "job/core/course/ending.hpp"

namespace elasticrun::job::course {

void Ending::begin(Cause cause, int code, std::string words, Time deadline) {
  if (ending()) return;
  cause_ = cause;
  const int own = row_of(cause).exit_code;
  exit_code_ = own == own_code ? code : own;
  words_ = std::move(words);
  deadline_ = deadline;
  happen(PhaseEvent::stop);
}

void Ending::keep(Failure failure) {
  if (!kept_ || (kept_->replaced_in_training && !failure.replaced_in_training))
    kept_ = std::move(failure);
}

void Ending::trains_again() {
  if (kept_ && kept_->replaced_in_training) kept_.reset();
}

Time Ending::patience_ends(Duration patience) const {
  const bool waits = is(Phase::starting) || is(Phase::short_of);
  return waits && short_of_workers() ? short_since_ + patience : never;
}

}  // namespace elasticrun::job::course
