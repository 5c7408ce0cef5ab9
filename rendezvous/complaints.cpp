// See complaints.hpp.
#include "rendezvous/complaints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace elasticrun::rendezvous {

void Complaints::add(WorkerId from, const std::vector<wire::Complaint>& complaints, bool late) {
  Said& said = said_[from];
  for (const wire::Complaint& complaint : complaints) {
    if (said.complaints++ >= of_one_max) continue;
    edges_.push_back({from, complaint, late});
    said.more_than_waiting |= !complaint.waits;
  }
}

void Complaints::next_attempt() {
  said_.clear();
  std::set<WorkerId> named;
  for (const Edge& edge : std::exchange(edges_, {})) {
    if (edge.complaint.waits) continue;
    named.insert(edge.from);
    named.insert(edge.complaint.about);
  }
  for (const WorkerId worker : named) ++attempts_[worker];
}

int Complaints::failed_attempts(WorkerId worker) const {
  const auto found = attempts_.find(worker);
  return found == attempts_.end() ? 0 : found->second;
}

bool Complaints::has_complained(WorkerId worker) const {
  const auto said = said_.find(worker);
  return said != said_.end() && said->second.more_than_waiting;
}

std::vector<Blamed> Complaints::verdict(const std::set<WorkerId>& newcomers,
                                        const std::set<WorkerId>& members, WorkerId needed,
                                        bool somebody_died) const {
  const auto present = [&](WorkerId w) { return newcomers.contains(w) || members.contains(w); };
  std::vector<Edge> open, waiting;
  for (const Edge& edge : edges_) {
    const auto& [about, hung_up, waits, reason] = edge.complaint;
    if (!present(edge.from) || !present(about)) continue;
    // A worker that hangs up because of a problem of its own, or of the Abort, is not at fault.
    if (hung_up && (edge.late || has_complained(about))) continue;
    // All of them may have waited for a worker that has died meanwhile.
    if (waits && somebody_died) continue;
    (waits ? waiting : open).push_back(edge);
  }
  // That one worker waits for another counts only where there are no other complaints, and only
  // against the last of a chain, which itself waits for no worker.
  std::set<WorkerId> waits;
  for (const Edge& edge : waiting) waits.insert(edge.from);
  if (open.empty())
    std::ranges::copy_if(waiting, std::back_inserter(open),
                         [&](const Edge& edge) { return !waits.contains(edge.complaint.about); });
  if (open.empty()) open = waiting;

  std::vector<Blamed> blamed;
  std::map<WorkerId, std::set<WorkerId>> troubled;  // each worker: the peers it has problems with
  for (const Edge& edge : open) {
    troubled[edge.from].insert(edge.complaint.about);
    troubled[edge.complaint.about].insert(edge.from);
  }
  while (!open.empty()) {
    const auto may_be_blamed = [&](WorkerId worker, const Edge& edge) {
      return worker != needed && (newcomers.contains(worker) || worker == edge.complaint.about ||
                                  troubled.at(worker).size() > 1);
    };
    // Among equals, the worker that was involved in more earlier failures than the other end.
    using Trouble = std::tuple<bool, std::size_t, int, WorkerId>;
    std::optional<Trouble> worst;
    for (const Edge& edge : open)
      for (const WorkerId worker : {edge.from, edge.complaint.about})
        if (may_be_blamed(worker, edge))
          worst = std::max(
              worst, std::optional(Trouble(newcomers.contains(worker), troubled.at(worker).size(),
                                           failed_attempts(worker), worker)));
    // The complaints left are all about the needed worker: then the other end has to go.
    const WorkerId guilty = worst ? std::get<WorkerId>(*worst) : open.front().from;
    if (guilty == needed) break;
    const auto touches = [&](const Edge& edge) {
      return edge.from == guilty || edge.complaint.about == guilty;
    };
    const Edge& first = *std::ranges::find_if(open, touches);
    blamed.push_back(
        {guilty, first.from == first.complaint.about
                     ? first.complaint.reason
                     : fmt::format("worker {} has no connection to worker {}: {}", first.from.value,
                                   first.complaint.about.value, first.complaint.reason)});
    std::erase_if(open, touches);
    for (const WorkerId other : troubled.at(guilty))
      if (other != guilty) troubled.at(other).erase(guilty);
    troubled.erase(guilty);
  }
  return blamed;
}

}  // namespace elasticrun::rendezvous
