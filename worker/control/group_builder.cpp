// See group_builder.hpp. A group is in the map from form() until the background thread closes it,
// so an abort reaches it at every point of its life.
#include "worker/control/group_builder.hpp"

#include <exception>
#include <iterator>
#include <utility>

#include "base/quiet_thread.hpp"

namespace elasticrun::worker::control {

GroupBuilder::GroupBuilder(std::unique_ptr<collective::DataPlane> plane, Handlers handlers)
    : plane_(std::move(plane)), handlers_(std::move(handlers)) {
  thread_ = start_quiet_thread("er-builder", [this] { run(); });
}

GroupBuilder::~GroupBuilder() { stop(); }

void GroupBuilder::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    for (auto& [generation, entry] : groups_) discard(entry);
    wake_.notify_one();
  }
  thread_.join();
}

void GroupBuilder::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return ending_ || !work_.empty(); });
    if (ending_) return;
    const auto work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
}

void GroupBuilder::post(std::function<void()> work) {
  work_.push_back(std::move(work));
  wake_.notify_one();
}

void GroupBuilder::discard(Entry& entry) {
  entry.unwanted = true;
  if (entry.group) entry.group->abort();
}

// ---------------------------------------------------------------- orders

void GroupBuilder::form(const collective::GroupSpec& spec) {
  const std::lock_guard lock(mutex_);
  groups_[spec.generation];
  post([this, spec] { do_form(spec); });
}

void GroupBuilder::connect(Generation generation, std::vector<std::string> addresses) {
  const std::lock_guard lock(mutex_);
  post([this, generation, addresses = std::move(addresses)] { do_connect(generation, addresses); });
}

void GroupBuilder::abort(Generation up_to) {
  const std::lock_guard lock(mutex_);
  for (auto& [generation, entry] : groups_)
    if (generation <= up_to) discard(entry);
  post([this] { sweep(); });
}

std::vector<collective::HeldUp> GroupBuilder::held_up() const {
  const std::lock_guard lock(mutex_);
  std::vector<collective::HeldUp> held_up;
  for (const auto& [generation, entry] : groups_) {
    if (!entry.group || entry.unwanted) continue;
    collective::HeldUp one{generation, entry.group->waits_for(), entry.group->lost_links()};
    if (!one.waits_for.empty() || !one.lost_links.empty()) held_up.push_back(std::move(one));
  }
  return held_up;
}

void GroupBuilder::drop(Generation generation) {
  const std::lock_guard lock(mutex_);
  const auto found = groups_.find(generation);
  if (found == groups_.end()) return;
  discard(found->second);
  post([this] { sweep(); });
}

void GroupBuilder::close(Generation below) {
  const std::lock_guard lock(mutex_);
  for (auto& [generation, entry] : groups_)
    if (generation < below) entry.unwanted = true;
  post([this] { sweep(); });
}

collective::Group* GroupBuilder::acquire(Generation generation) {
  const std::lock_guard lock(mutex_);
  const auto found = groups_.find(generation);
  if (found == groups_.end() || !found->second.connected || found->second.unwanted) return nullptr;
  found->second.borrowed = true;
  return found->second.group.get();
}

void GroupBuilder::release(Generation generation) {
  const std::lock_guard lock(mutex_);
  const auto found = groups_.find(generation);
  if (found == groups_.end()) return;
  found->second.borrowed = false;
  if (found->second.unwanted) post([this] { sweep(); });
}

// ---------------------------------------------------------------- background thread

// The group, or null when it is not wanted any more. Only this thread takes groups out of the map,
// so the pointer stays valid while this thread uses it.
collective::Group* GroupBuilder::wanted(Generation generation) {
  const std::lock_guard lock(mutex_);
  const auto found = groups_.find(generation);
  return found == groups_.end() || found->second.unwanted ? nullptr : found->second.group.get();
}

void GroupBuilder::do_form(const collective::GroupSpec& spec) {
  const Generation generation = spec.generation;
  try {
    std::unique_ptr<collective::Group> made = plane_->create(spec);
    collective::Group* group = nullptr;
    {
      const std::lock_guard lock(mutex_);
      const auto found = groups_.find(generation);
      if (found == groups_.end() || found->second.unwanted) return;
      group = made.get();
      found->second.group = std::move(made);
    }
    std::string addresses = group->publish();
    handlers_.published(generation, std::move(addresses), group->needs());
  } catch (const collective::GroupBroken& error) {
    handlers_.failed(generation, error);
  } catch (const std::exception& error) {
    handlers_.failed(generation, collective::GroupBroken(error.what()));
  }
}

void GroupBuilder::do_connect(Generation generation, const std::vector<std::string>& addresses) {
  collective::Group* const group = wanted(generation);
  if (!group) return;
  try {
    group->connect(addresses);
    {
      const std::lock_guard lock(mutex_);
      groups_.at(generation).connected = true;
    }
    handlers_.formed(generation, group->formation(), group->rejected());
  } catch (const collective::GroupBroken& error) {
    handlers_.failed(generation, error);
  } catch (const std::exception& error) {
    handlers_.failed(generation, collective::GroupBroken(error.what()));
  }
}

void GroupBuilder::sweep() {
  std::vector<std::unique_ptr<collective::Group>> closing;
  {
    const std::lock_guard lock(mutex_);
    for (auto item = groups_.begin(); item != groups_.end();) {
      Entry& entry = item->second;
      const bool keep = !entry.unwanted || entry.borrowed;
      if (!keep && entry.group) closing.push_back(std::move(entry.group));
      item = keep ? std::next(item) : groups_.erase(item);
    }
  }
  for (const auto& group : closing) group->close();
}

}  // namespace elasticrun::worker::control
