// See gradient_reduction.hpp.
#include "worker/training/gradient_reduction.hpp"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/check.hpp"

namespace elasticrun::worker::training {
namespace {

GradientNoise::Squares squares_of(std::span<const state::Tensor> tensors) {
  GradientNoise::Squares squares;
  for (const state::Tensor& tensor : tensors)
    if (tensor.count > 0) squares.push_back({tensor.data, tensor.data, tensor.type, tensor.count});
  return squares;
}

}  // namespace

Reduction::Reduction(const state::StateTable& table, std::size_t extras_max)
    : table_(table),
      arithmetic_(table.arithmetic()),
      extras_max_(extras_max),
      is_set_(table.gradients().size()),
      noise_(table.arithmetic(), squares_of(table.gradients())),
      overlap_([this] { reduce_waiting(); }, marks_of(table)) {
  place_all();
  for (const state::Tensor& tensor : table.gradients())
    numbers_of_.emplace(tensor.name, numbers_of_.size());
}

// On the host there is nothing to mark.
std::function<void(std::size_t)> Reduction::marks_of(const state::StateTable& table) {
  if (!table.on_gpu()) return {};
  return [this](std::size_t gradient) {
    if (has_buckets()) arithmetic_.mark(gradient);
  };
}

void Reduction::use_buckets(std::size_t bytes) {
  if (std::exchange(bucket_bytes_, bytes) != bytes) place_all();
}

std::optional<std::size_t> Reduction::number_of(std::string_view name) const {
  const auto found = numbers_of_.find(name);
  return found == numbers_of_.end() ? std::nullopt : std::optional(found->second);
}

// ---------------------------------------------------------------- a step

void Reduction::begin_step(const StepShare& share) {
  ER_CHECK(share.global_samples > 0);
  share_ = share;
  local_ = 0;
  done_ = 0;
  group_ = nullptr;
  std::ranges::fill(is_set_, 0);
  if (!share.measured) noise_.discard();
  if (calls() <= 1) return;
  for (Row& row : rows_) allocate(row);
  for (Rows& rows : buckets_)
    for (Row& row : rows) allocate(row);
}

void Reduction::begin_piece(const void* step) { overlap_.begin(step); }

void Reduction::begin_last_piece(collective::Group& group, const void* step, double samples) {
  overlap_.begin(step);
  group_ = &group;
  last_weight_ = samples / share_.global_samples;
  // To measure the noise, the gradients are read before any of them is reduced; and a worker alone
  // has nothing to wait for, but the thread.
  if (!share_.measured && group.size() > 1) overlap_.start();
}

void Reduction::take_last_piece(const Rows& bucket) {
  if (calls() > 0)
    for (const Row& row : bucket) take(row, last_weight_, calls() == 1);
}

// Takes one bucket after the other as they wait for the thread of overlap_. The program, and
// accumulate(), touch neither the buckets' gradients nor their memory meanwhile.
class Reduction::WaitingBuckets final : public collective::Group::RowSource {
 public:
  explicit WaitingBuckets(Reduction& reduction) : reduction_(reduction) {}

  std::span<const collective::Group::Row> next() override {
    sums_.clear();
    const auto number = reduction_.overlap_.next_waiting();
    if (!number) return {};
    reduction_.arithmetic_.follow(reduction_.cut_[*number].gradients);
    const Rows& bucket = reduction_.buckets_[*number];
    reduction_.take_last_piece(bucket);
    reduction_.add_sums(bucket, reduction_.group_->size(), sums_);
    under_way_.push_back(&bucket);
    return sums_;
  }
  void summed() override {
    reduction_.hand_back(*under_way_.front());
    under_way_.pop_front();
  }

 private:
  Reduction& reduction_;
  Sums sums_;
  std::deque<const Rows*> under_way_;
};

void Reduction::reduce_waiting() {
  WaitingBuckets buckets(*this);
  group_->all_reduce_from(buckets);
}

void Reduction::cancel() {
  overlap_.cancel();
  try {
    if (has_buckets()) arithmetic_.join();
  } catch (const collective::GroupBroken&) {  // the GPU has failed, and does nothing more
  }
}

void Reduction::accumulate(double samples) {
  ER_CHECK(done_ < calls(), "more calls of compute than said");
  overlap_.close();
  const double weight = samples / share_.global_samples;
  // The only piece of a step is also its mean, which is measured later.
  if (share_.measured && weight < 1) {
    bring_home();
    local_ += weight * noise_.square();
  }
  for (const Row& row : rows_) take(row, weight, done_ == 0);
  if (done_ + 1 < calls())  // those of the last call are taken as they are reduced
    for (const Rows& rows : buckets_)
      for (const Row& row : rows) take(row, weight, done_ == 0);
  for (std::size_t i = 0; i < is_set_.size(); ++i)
    if (overlap_.value_of(i).is_set) is_set_[i] = 1;
  ++done_;
}

void Reduction::reduce(collective::Group& group, std::span<double> extras) {
  ER_CHECK(done_ == calls() && extras.size() <= extras_max_);
  const bool beside = overlap_.active();
  overlap_.finish();
  const Rows none;
  const Rows& last = has_buckets() ? buckets_.back() : none;
  if (beside && has_buckets())
    arithmetic_.join();
  else
    for (std::size_t i = 0; i + 1 < buckets_.size(); ++i) {
      const Rows* const bucket = &buckets_[i];
      take_last_piece(*bucket);
      sum(group, {&bucket, 1});
    }
  take_last_piece(last);
  const auto unset = calls() > 0 ? std::ranges::count(is_set_, 0) : 0;
  numbers_.assign(extras.begin(), extras.end());
  numbers_.insert(numbers_.end(),
                  {local_, static_cast<double>(calls()), static_cast<double>(unset)});
  std::byte* const numbers = numbers_in(rows_.back());
  arithmetic_.write(numbers, numbers_);
  const Rows* const parts[] = {&last, &rows_};
  sum(group, parts);
  arithmetic_.read(numbers, numbers_);
  std::copy_n(numbers_.begin(), extras.size(), extras.begin());
  const double local = numbers_[extras.size()], pieces = numbers_[extras.size() + 1];
  agree_on_set(group, numbers_[extras.size() + 2]);
  if (share_.measured) noise_.measure(group.size(), local, pieces, share_.global_samples);
}

// `unset`: how many gradients all workers have left unset, one by one.
void Reduction::agree_on_set(collective::Group& group, double unset) {
  if (unset == 0) {
    std::ranges::fill(is_set_, 1);
    return;
  }
  std::vector<double> workers(is_set_.begin(), is_set_.end());
  group.all_reduce(workers.data(), DataType::float64, workers.size());
  for (std::size_t i = 0; i < is_set_.size(); ++i) is_set_[i] = workers[i] > 0 ? 1 : 0;
}

}  // namespace elasticrun::worker::training
