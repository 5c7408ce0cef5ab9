// See failures.hpp.
#include "job/core/workers/failures.hpp"

#include <utility>

namespace elasticrun::job::workers {

// A host that dies takes many members with it, and a kernel short of memory kills several. So all
// that one world loses is one failure; otherwise large jobs would use up --max-restarts faster than
// small ones.
bool Failures::count(bool member) {
  ++failed_;
  if (member && failed_members_++ > 0) return false;
  return ++in_a_row_ > restarts_max_;
}

void Failures::world_formed(StepId step) {
  failed_members_ = failed_ = left_ = 0;
  poison_.world_formed(step);
}

void Failures::committed(StepId step) {
  poison_.committed(step);
  in_a_row_ = 0;
}

}  // namespace elasticrun::job::workers
