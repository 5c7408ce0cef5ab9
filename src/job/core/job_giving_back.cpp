// Hosts that no worker needs now, that the job names no longer, or that are drained (job.hpp).
#include <fmt/format.h>

#include <map>
#include <set>

#include "job/core/job.hpp"
#include "job/core/workers/staffing.hpp"

namespace elasticrun::job {

void Job::drop_hosts(const std::set<HostId>& dropped) {
  std::map<HostId, std::size_t> hosts;
  for (const HostId host : dropped) hosts.emplace(host, workers_.on(host).size());
  hosts_.drop(hosts);
}

// Its workers have left, so its agent may end, and what happens to it is no loss.
bool Job::is_free(HostId host) const {
  return hosts_.up(host) && hosts_.dropped(host) && workers_.on(host).empty() &&
         workers_.stuck_on(host).empty();
}

void Job::let_dropped_hosts_go() {
  for (const auto& [host, workers] : hosts_.dropped()) {
    if (!is_free(host) || hosts_.given_back(host)) continue;
    hosts_.give_back(host);
    out_.add(Order{host, wire::agent::Shutdown{0}});
  }
}

// The agent of a free host has ended.
void Job::host_freed(HostId host) {
  hosts_.freed(host);
  const std::size_t workers = hosts_.dropped().at(host);
  std::string left = "its agent has ended";
  if (workers == 1) left = "its worker has left and " + left;
  if (workers > 1) left = fmt::format("its {} workers have left and {}", workers, left);
  const char* const but = hosts_.stays(host) ? " but for this program" : "";
  out_.log(report::LogLevel::info, fmt::format("{} is free{}: {}", name_of(host), but, left));
}

void Job::give_back_unused_hosts(Time now) {
  if (!watch_.unused.looked_for() || !first_.begun()) return;
  std::set<HostId> used;
  for (const auto& [id, worker] : workers_.rows()) used.insert(worker.slot.host);
  for (const SlotId slot : workers::wanted_slots(slots_, workers_, sizing_.target() + spec_.spares,
                                                 now, membership_.members()))
    used.insert(slot.host);
  std::vector<HostId> hosts;
  for (const SlotId slot : slots_.all()) {
    const bool starts = hosts_.live(slot.host) && !hosts_.up(slot.host);
    const bool listed = !hosts.empty() && hosts.back() == slot.host;
    if (!starts && !listed && !hosts_.stays(slot.host)) hosts.push_back(slot.host);
  }
  std::set<HostId> free;
  for (const auto& [host, workers] : hosts_.dropped())
    if (!hosts_.live(host) && !hosts_.stays(host)) free.insert(host);
  watch_.unused.look(hosts, used, now, free);
  const std::vector<HostId> unused = watch_.unused.take(now);
  if (unused.empty()) return;
  GiveBack order{unused, {}};
  for (const HostId host : unused) {
    hosts_.give_back(host);
    if (!hosts_.up(host)) continue;
    order.with_agent.insert(host);
    out_.add(Order{host, wire::agent::Shutdown{0}});
  }
  out_.add(std::move(order));
}

// A host can have said already that it will go (--notice).
void Job::on(const nodes::Drained& drained, Time now) {
  if (hosts_.leaving(drained.host)) return;
  if (hosts_.live(drained.host))
    return hear(drained.host, wire::agent::HostLeaves{drained.why}, now);
  out_.record("host_leaves", {{"host", name_of(drained.host)}, {"reason", drained.why}});
  out_.log(report::LogLevel::info,
           fmt::format("{} will go: {}", name_of(drained.host), drained.why));
}

void Job::on(const nodes::Resumed& resumed, Time now) {
  hosts_.leaves_not(resumed.host);
  on(HostsNoted{true, resumed.news}, now);
}

// The driver takes their slots away, and back when they stay (SlotsChanged).
void Job::on(const GiveBack::Answer& answer, Time now) {
  std::string names;
  for (const HostId host : answer.hosts) {
    names += (names.empty() ? "" : ", ") + name_of(host);
    if (answer.taken) continue;
    hosts_.keep(host);
    watch_.unused.refused(host, now);
  }
  concerns_staff(now);
  if (answer.taken) {
    out_.record("hosts_given_back", {{"hosts", names}});
    out_.log(report::LogLevel::info,
             fmt::format("{} given back: no worker is wanted there", names));
  } else {
    out_.log(report::LogLevel::error,
             fmt::format("{} cannot be given back: {}", names, answer.taken.error().text));
  }
}

}  // namespace elasticrun::job
