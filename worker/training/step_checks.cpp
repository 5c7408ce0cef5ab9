// What train() checks of the program and of the other members; see steps.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "worker/core/agreement.hpp"
#include "worker/training/steps.hpp"

namespace elasticrun::worker::training {
namespace {

// What all workers must have alike.
struct Alike {
  const char* name;
  std::string here;

  std::uint64_t hash() const {
    Hash hash;
    hash.add(here);
    return hash.value();
  }
};

// Collective: names those that are not alike, and says what they are here.
std::string what_differs(collective::Group& group, int size, std::span<const Alike> all) {
  std::vector<core::Agreement> mine;
  std::vector<core::Agreement::Row> sums;
  for (const Alike& one : all) {
    mine.emplace_back(one.hash());
    sums.push_back(mine.back().mine());
  }
  group.all_reduce(sums.data(), collective::DataType::float64,
                   sums.size() * core::Agreement::Row().size());
  std::string words;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!mine[i].holds(sums[i], size))
      words += fmt::format("{}{} ({} here)", words.empty() ? "" : ", ", all[i].name, all[i].here);
  return words;
}

}  // namespace

void Steps::check_state() {
  if (const auto name = watch_.changed())
    fail(ELASTICRUN_MISUSE,
         fmt::format("compute has changed the registered state '{}' in step {}: a step may "
                     "be repeated; change state in apply, or register it as buffers",
                     *name, step_->number));
}

// A step needs samples. None are left where the state is of a program with epoch_steps, or with
// more samples; of the members one may have other options, and is told so.
bool Steps::has_samples() {
  const std::int64_t cursor = session_.progress.cursor;
  if (cursor < options_.samples) return true;
  if (survives([this] { check_agreement(*session_.group()); }))
    session_.fail(ELASTICRUN_MISUSE,
                  fmt::format("train: the state that it resumes from has used {} samples of the "
                              "epoch, which has {}; train with the samples and epoch_steps of the "
                              "program that made it",
                              cursor, options_.samples));
  return false;
}

// Checks, once in each world and call, that all workers train alike: programs that ask for
// different samples would take each other's, or wait for each other for ever. Finds out as well
// which rows can be joined.
void Steps::check_agreement(collective::Group& group) {
  if (agreed_ == std::pair(session_.generation(), call_)) return;
  const core::Progress& p = session_.progress;
  const std::array alike{Alike{"samples", std::to_string(options_.samples)},
                         Alike{"epochs", std::to_string(options_.epochs)},
                         Alike{"epoch_steps", std::to_string(options_.epoch_steps)},
                         Alike{"bucket_bytes", std::to_string(options_.bucket_bytes)},
                         Alike{"seed", std::to_string(p.seed)},
                         Alike{"the memory of gradients",
                               session_.table().on_gpu() ? "that of a GPU" : "that of the host"},
                         Alike{"the call of train", std::to_string(p.train_call)},
                         Alike{"the epoch", std::to_string(p.epoch)},
                         Alike{"the samples used in it", std::to_string(p.cursor)},
                         Alike{"the step", std::to_string(p.step)}};
  Hash hash;
  for (const Alike& one : alike) hash.add(one.hash());
  const core::Agreement agreement(hash.value()), joints(reduction_.joints());
  const bool has_trained = agreed_ && agreed_->second == call_;
  std::array sums{agreement.mine(), joints.mine(), core::Agreement::Row{has_trained ? 1.0 : 0.0}};
  group.all_reduce(sums.data(), collective::DataType::float64, sizeof sums / sizeof(double));
  if (!agreement.holds(sums[0], session_.size())) {
    const std::string why = fmt::format(
        "train: the workers do not agree on {}; all must be the same program with the "
        "same options",
        what_differs(group, session_.size(), alike));
    session_.differ(has_trained, static_cast<int>(sums[2][0]), why);
  }
  reduction_.join_rows(joints.holds(sums[1], session_.size()));
  agreed_ = std::pair(session_.generation(), call_);
}

// Workers with an empty share take over the names that are new in this step. When a worker has
// other names, or another order, the sums are useless to all, so all workers learn of it and stop.
void Steps::agree_on_names(collective::Group& group) {
  std::vector<std::string>& names = step_->sums.names();
  std::vector<double> counts(static_cast<std::size_t>(session_.size()));
  counts[static_cast<std::size_t>(session_.rank())] = static_cast<double>(names.size());
  group.all_reduce(counts.data(), collective::DataType::float64, counts.size());
  const auto lead = std::max_element(counts.begin(), counts.end());
  const int root = static_cast<int>(lead - counts.begin());
  std::vector<std::array<char, Sums::max_name + 1>> texts(static_cast<std::size_t>(*lead));
  for (std::size_t i = 0; i < std::min(names.size(), texts.size()); ++i)
    names[i].copy(texts[i].data(), Sums::max_name);
  group.broadcast(texts.data(), texts.size() * sizeof texts[0], root);
  std::size_t same = 0;
  for (; same < texts.size(); ++same) {
    if (same == names.size()) names.emplace_back(texts[same].data());
    if (names[same] != texts[same].data()) break;
  }
  double differ = same < texts.size() ? 1 : 0;
  group.all_reduce(&differ, collective::DataType::float64, 1);
  if (differ == 0) return;
  const std::string why =
      same < texts.size()
          ? fmt::format("'{}' stands where rank {} has '{}'", names[same], root, texts[same].data())
          : fmt::format("{} workers have other names than this one", differ);
  session_.fail_together(
      fmt::format("step.sum: {} (step {}); all workers must use the same names in "
                  "the same order",
                  why, step_->number));
}

}  // namespace elasticrun::worker::training
