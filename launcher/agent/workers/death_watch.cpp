// See death_watch.hpp.
#include "launcher/agent/workers/death_watch.hpp"

#include <boost/asio/post.hpp>
#include <utility>

namespace elasticrun::launcher::agent::workers {
namespace {

// Before Linux 5.17 the kernel tells only when the first thread has noticed its death, too.
constexpr int looks_max = 20;
constexpr auto between_looks = std::chrono::milliseconds(1);

}  // namespace

DeathWatch::DeathWatch(boost::asio::io_context& io, const std::string& lifeline)
    : timer_(io), watch_(lifeline, [this, &io, alive = alive_] {
        boost::asio::post(io, [this, alive] {
          if (*alive) look(1);
        });
      }) {}

void DeathWatch::started(pid_t process, std::function<void(const ProcessEnd&)> dies) {
  process_ = process;
  first_seen_ = process_stat(process);
  dies_ = std::move(dies);
}

void DeathWatch::look(int times) {
  if (!dies_) return;
  const std::optional<ProcessStat> stat = process_stat(process_);
  if (!stat || !first_seen_ || stat->started != first_seen_->started) return;  // it has ended
  if (const auto end = end_in(*stat)) return std::exchange(dies_, nullptr)(*end);
  if (times == looks_max) return;
  timer_.expires_after(between_looks);
  timer_.async_wait([this, times, alive = alive_](const boost::system::error_code& error) {
    if (!error && *alive) look(times + 1);
  });
}

}  // namespace elasticrun::launcher::agent::workers
