// See node_watch.hpp.
#include "launcher/srun/node_watch.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/time.hpp"
#include "launcher/srun/node_states.hpp"

namespace elasticrun::launcher::srun {
namespace {

constexpr Duration interval = std::chrono::seconds(20);
constexpr Duration watch_patience = std::chrono::seconds(15);

// Asks for the job's nodes first: others may have been given to it, and some given back.
executors::Hook question(const std::string& job) {
  return {fmt::format("nodes=$(squeue --noheader --jobs={} --format=%N | paste -sd,) && "
                      "[ -n \"$nodes\" ] && "
                      "exec sinfo --noheader --Node --nodes=\"$nodes\" --format='%N %T %E'",
                      job),
          watch_patience};
}

}  // namespace

NodeWatch::NodeWatch(boost::asio::io_context& io, const std::string& job, Handlers handlers)
    : timer_(io), question_(std::in_place, io, question(job)), handlers_(std::move(handlers)) {}

void NodeWatch::start() {
  timer_.expires_after(interval);
  timer_.async_wait([this](const boost::system::error_code& ec) {
    if (!ec && question_) ask();
  });
}

void NodeWatch::stop() {
  timer_.cancel();
  question_.reset();
}

void NodeWatch::ask() {
  question_->run({}, [this](const executors::HookAnswer& answer) {
    heard(answer);
    if (question_) start();
  });
}

void NodeWatch::heard(const executors::HookAnswer& answer) {
  if (answer.output) {
    trouble_.clear();
    const NodeNews news = node_news(*answer.output, going_);
    for (const auto& [node, why] : news.go) {
      if (!question_) return;  // a handler has stopped this
      going_.insert(node);
      handlers_.goes(node, why);
    }
    for (const auto& [node, why] : news.stay) {
      if (!question_) return;
      going_.erase(node);
      handlers_.stays(node, why);
    }
    return;
  }
  const std::string trouble =
      fmt::format("Slurm does not say which nodes are drained: squeue and sinfo: {}",
                  answer.output.error().text);
  if (trouble == std::exchange(trouble_, trouble)) return;
  handlers_.line(trouble);
}

}  // namespace elasticrun::launcher::srun
