// See kept_saves.hpp.
#include "job/core/course/kept_saves.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace elasticrun::job::course {
namespace {

// As many as are kept in the folder (save/folder.hpp).
constexpr std::size_t most = 2;

}  // namespace

KeptSaves::KeptSaves(std::vector<wire::saved::Save> found) : saves_(std::move(found)) {
  if (newest()) resumed_from_ = StepId(newest()->manifest.step);
}

std::string KeptSaves::words() const {
  if (!newest()) return "there is no whole save";
  return fmt::format("the newest whole save is {} (step {})", newest()->path,
                     newest()->manifest.step);
}

void KeptSaves::add(wire::saved::Save save) {
  saves_.insert(saves_.begin(), std::move(save));
  if (saves_.size() > most) saves_.resize(most);
  forget_failed_readings();
}

void KeptSaves::refuse(const std::string& path) {
  std::erase_if(saves_, [&](const wire::saved::Save& one) { return one.path == path; });
  forget_failed_readings();
  if (!resumed_from_) return;
  resumed_from_.reset();
  if (newest()) resumed_from_ = StepId(newest()->manifest.step);
}

wire::TrainSpec KeptSaves::train_of(std::int64_t call) const {
  auto it = trains_.upper_bound(call);
  if (it != trains_.begin()) --it;
  wire::TrainSpec train = it->second;
  if (it->first != call) train.samples = 0;
  return train;
}

std::string KeptSaves::ready(const wire::TrainSpec& train) {
  // A newcomer goes through earlier calls, and all begin with them after a restore.
  if (train.samples > 0 || !trains_.contains(train.call)) trains_[train.call] = train;
  if (!newest()) return {};
  const auto& [path, saved] = *newest();
  const auto of_another = [&, path = path](const std::string& what) {
    return fmt::format(
        "{} is the save of another program ('{}'): {}; give another folder to begin afresh", path,
        fmt::join(saved.argv, " "), what);
  };
  if (train.state_bytes != saved.state_bytes)
    return of_another(fmt::format("it holds {} bytes of state, and this program registers {}",
                                  saved.state_bytes, train.state_bytes));
  if (train.state_layout != saved.state_layout)
    return of_another("the names, types or sizes of what is registered differ");
  // 0: they are not known.
  const bool both_known = train.samples > 0 && saved.samples > 0;
  if (train.call == saved.call && both_known && train.samples != saved.samples)
    return of_another(
        fmt::format("an epoch had {} samples, and has {} now", saved.samples, train.samples));
  return {};
}

}  // namespace elasticrun::job::course
