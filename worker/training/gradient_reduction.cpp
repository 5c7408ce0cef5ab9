// See gradient_reduction.hpp.
#include "worker/training/gradient_reduction.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace elasticrun::worker::training {

namespace {

// Number of our own extras after the caller's: GradientSquares::local and ::pieces.
constexpr std::size_t own_extras = 2;
// Up to this size small tensors of all types are one row of float64: a second message would take
// longer than the bytes that this costs.
constexpr std::size_t one_row_bytes_max = 64u << 10;

// Tensors keep their own alignment where they lie one after the other.
std::size_t bytes_of(const gpu::Arithmetic::Factors& row) {
  return (row.count * size_of(row.type) + 15) / 16 * 16;
}

}  // namespace

Reduction::Reduction(const state::StateTable& table, std::size_t extras_max)
    : table_(table), arithmetic_(table.arithmetic()), extras_max_(extras_max) {
  place_all();
  for (const state::Tensor& tensor : table.gradients())
    if (tensor.count > 0)
      gradients_.push_back({tensor.data, tensor.data, tensor.type, tensor.count});
}

void Reduction::use_buckets(std::size_t bytes) {
  if (table_.on_gpu()) bytes = 0;
  if (std::exchange(bucket_bytes_, bytes) != bytes) place_all();
}

void Reduction::place_all() {
  overlap_.reset();
  packed_.clear();
  small_places_.clear();
  large_places_.clear();
  large_.reset();
  large_bytes_ = 0;
  if (bucket_bytes_ > 0) place_in_buckets();
  std::vector<state::Tensor> small, large;
  const auto sort_in = [&](const state::Tensor& tensor) {
    const bool is_large = !is_integer(tensor.type) && tensor.bytes() >= arithmetic_.large_bytes();
    if (tensor.count > 0) (is_large ? large : small).push_back(tensor);
  };
  if (!overlap_)
    for (const state::Tensor& tensor : table_.gradients()) sort_in(tensor);
  for (const state::Tensor& tensor : table_.buffers()) sort_in(tensor);
  place_small(small);
  place_large(large);
}

void Reduction::place_in_buckets() {
  const std::span<const state::Tensor> gradients = table_.gradients();
  const std::vector<Bucket> buckets = cut_into_buckets(gradients, bucket_bytes_);
  for (const Bucket& bucket : buckets) {
    Packed packed{.places = {},
                  .type = arithmetic_.summed_as(bucket.type),
                  .count = bucket.count,
                  .memory = {}};
    std::size_t at = 0;
    for (const std::size_t gradient : bucket.gradients) {
      const state::Tensor& tensor = gradients[gradient];
      packed.places.push_back({tensor.data, tensor.type, tensor.count, packed.type, at});
      at += tensor.count * size_of(packed.type);
    }
    packed.memory = arithmetic_.allocate(at);
    packed_.push_back(std::move(packed));
  }
  overlap_.emplace(buckets, gradients.size(),
                   [this](std::size_t bucket) { reduce_bucket(bucket); });
}

void Reduction::place_small(const std::vector<state::Tensor>& tensors) {
  for (Fused& fused : fused_) fused.count = 0;
  std::size_t all = 0;
  for (const state::Tensor& tensor : tensors) all += tensor.count * sizeof(double);
  for (const state::Tensor& tensor : tensors) {
    // On the GPU only integers come here, which have no type but float64 to be summed in.
    const DataType type =
        all <= one_row_bytes_max ? DataType::float64 : arithmetic_.summed_as(tensor.type);
    Fused& fused = fused_[type == DataType::float64 ? 1 : 0];
    small_places_.push_back(
        {tensor.data, tensor.type, tensor.count, type, fused.count * size_of(type)});
    fused.count += tensor.count;
  }
  for (Fused& fused : fused_) {
    const std::size_t extras = &fused == &fused_[1] ? extras_max_ + own_extras : 0;
    fused.memory = arithmetic_.allocate((fused.count + extras) * size_of(fused.type));
  }
}

void Reduction::place_large(const std::vector<state::Tensor>& tensors) {
  for (const state::Tensor& tensor : tensors) {
    const DataType type = gpu::Arithmetic::gathered_as(tensor.type);
    large_places_.push_back({tensor.data, tensor.type, tensor.count, type, large_bytes_});
    large_bytes_ += (tensor.count * size_of(type) + 15) / 16 * 16;
  }
}

// The accumulator of a tensor.
Reduction::Numbers Reduction::gathered(const Place& place) const {
  const bool small =
      &place >= small_places_.data() && &place < small_places_.data() + small_places_.size();
  const gpu::Arithmetic::Memory& memory =
      small ? fused_[place.gathered == DataType::float64 ? 1 : 0].memory : large_;
  return {memory.get() + place.at, place.gathered};
}

void Reduction::begin_step(const StepShare& share) {
  ER_CHECK(share.global_samples > 0);
  share_ = share;
  local_ = 0;
  done_ = 0;
  if (!share.measured) discard();
  const bool gathers = std::ranges::any_of(
      large_places_, [&](const Place& place) { return calls() > 0 && !in_place(place); });
  if (gathers && !large_) large_ = arithmetic_.allocate(large_bytes_);
}

void Reduction::begin_last_call(collective::Group& group, const void* step, double samples) {
  if (!overlap_) return;
  group_ = &group;
  last_weight_ = samples / share_.global_samples;
  // To measure the noise, the gradients are read before any of them is reduced.
  if (!share_.measured) overlap_->begin(step);
}

void Reduction::cancel() {
  if (overlap_) overlap_->cancel();
}

// On the thread of overlap_, or of reduce(). The program, and accumulate(), touch neither the
// bucket's gradients nor its memory meanwhile.
void Reduction::reduce_bucket(std::size_t index) {
  const Packed& packed = packed_[index];
  // One tensor by itself needs no copy.
  const bool alone = packed.places.size() == 1 && in_place(packed.places.front());
  const auto target = [&](const Place& place) {
    return alone ? place.own() : Numbers{packed.memory.get() + place.at, packed.type};
  };
  for (const Place& place : packed.places) {
    const Numbers to = target(place);
    if (calls() == 0)
      arithmetic_.clear(to.data, place.count * size_of(to.type));
    else if (calls() == 1)
      arithmetic_.scale(to, place.own(), place.count, last_weight_);
    else
      arithmetic_.add(to, place.own(), place.count, last_weight_);
  }
  const collective::Group::Row row{target(packed.places.front()).data, packed.type, packed.count};
  group_->all_reduce_each({&row, 1});
  if (alone) return;
  for (const Place& place : packed.places)
    arithmetic_.scale(place.own(), target(place), place.count, 1);
}

void Reduction::accumulate(double samples) {
  ER_CHECK(done_ < calls(), "more calls of compute than said");
  const double weight = samples / share_.global_samples;
  // The only piece of a step is also its mean, which is measured later.
  if (share_.measured && weight < 1) local_ += weight * arithmetic_.dot(gradients_);
  if (done_ + 1 < calls())  // those of the last call are taken as they are reduced
    for (const Packed& packed : packed_)
      for (const Place& place : packed.places)
        take({packed.memory.get() + place.at, packed.type}, place, weight);
  for (const Place& place : small_places_) take(gathered(place), place, weight);
  for (const Place& place :
       large_places_)  // nothing overwrites the only piece before it is reduced
    take(in_place(place) ? place.own() : gathered(place), place, weight);
  ++done_;
}

void Reduction::take(Numbers to, const Place& place, double weight) {
  if (is_integer(place.type))  // the last call's value
    arithmetic_.scale(to, place.own(), place.count, share_.leads ? 1 : 0);
  else if (done_ == 0)
    arithmetic_.scale(to, place.own(), place.count, weight);
  else
    arithmetic_.add(to, place.own(), place.count, weight);
}

// Makes rows of the large tensors, each in the type in which it is summed.
void Reduction::prepare_large() {
  for (const Place& place : large_places_) {
    const DataType summed = arithmetic_.summed_as(place.type);
    const bool own = summed == place.type;
    const Numbers row = own ? place.own() : gathered(place);
    if (calls() == 0)
      arithmetic_.clear(row.data, place.count * size_of(row.type));
    else if (own && calls() > 1)
      arithmetic_.scale(row, gathered(place), place.count, 1);
    rows_.push_back({row.data, row.type, place.count});
  }
}

// The last row ends with the extra numbers.
void Reduction::prepare_fused(std::span<const double> extras) {
  numbers_.assign(extras.begin(), extras.end());
  numbers_.insert(numbers_.end(), {local_, static_cast<double>(calls())});
  for (const Fused& fused : fused_) {
    const bool last = &fused == &fused_[1];
    if (calls() == 0) arithmetic_.clear(fused.memory.get(), fused.count * size_of(fused.type));
    if (last) arithmetic_.write(fused.memory.get() + fused.count * sizeof(double), numbers_);
    if (const std::size_t count = fused.count + (last ? numbers_.size() : 0))
      rows_.push_back({fused.memory.get(), fused.type, count});
  }
}

void Reduction::reduce(collective::Group& group, std::span<double> extras) {
  ER_CHECK(done_ == calls() && extras.size() <= extras_max_);
  if (overlap_) {
    if (!overlap_->active()) overlap_->begin(this);  // they were measured first
    overlap_->finish();
  }
  if (calls() == 0 && !large_ && std::ranges::any_of(large_places_, [&](const Place& place) {
        return arithmetic_.summed_as(place.type) != place.type;
      }))
    large_ = arithmetic_.allocate(large_bytes_);
  rows_.clear();
  prepare_large();
  prepare_fused(extras);
  group.all_reduce_each(rows_);
  for (const Place& place : large_places_)
    if (arithmetic_.summed_as(place.type) != place.type)
      arithmetic_.scale(place.own(), gathered(place), place.count, 1);
  for (const Place& place : small_places_)
    arithmetic_.scale(place.own(), gathered(place), place.count, 1);
  arithmetic_.read(fused_[1].memory.get() + fused_[1].count * sizeof(double), numbers_);
  std::copy_n(numbers_.begin(), extras.size(), extras.begin());
  const double local = numbers_[extras.size()], pieces = numbers_[extras.size() + 1];
  if (share_.measured) measure(group.size(), local, pieces);
}

// ---------------------------------------------------------------- noise

void Reduction::measure(int ranks, double local, double pieces) {
  const double total = arithmetic_.dot(gradients_);
  squares_ = {.local = pieces > 1 ? local : total,
              .total = total,
              .pieces = pieces,
              .samples = share_.global_samples};
  // With several ranks the previous gradients are not the same on all ranks: a newcomer has none.
  if (ranks == 1 && pieces == 1)
    measure_with_previous();
  else
    discard();
}

void Reduction::measure_with_previous() {
  const double square = squares_.total, n = squares_.samples;
  if (!previous_) {
    std::size_t bytes = 0;
    for (const gpu::Arithmetic::Factors& gradient : gradients_) bytes += bytes_of(gradient);
    previous_ = arithmetic_.allocate(bytes);
  }
  std::vector<gpu::Arithmetic::Factors> pairs = gradients_;
  std::size_t before = 0;
  for (gpu::Arithmetic::Factors& pair : pairs) {
    pair.a = previous_.get() + before;
    before += bytes_of(pair);
  }
  const bool paired = previous_samples_ > 0;
  const double cross = paired ? arithmetic_.dot(pairs) : 0;
  before = 0;
  for (const gpu::Arithmetic::Factors& gradient : gradients_) {
    arithmetic_.copy(previous_.get() + before, gradient.a, gradient.count * size_of(gradient.type));
    before += bytes_of(gradient);
  }
  if (paired) {
    const double m = previous_samples_, all = m + n;
    squares_ = {
        .local = (m * previous_square_ + n * square) / all,
        .total = (m * m * previous_square_ + n * n * square + 2 * m * n * cross) / (all * all),
        .pieces = 2,
        .samples = all,
        .biased = true};
  }
  previous_square_ = square;
  previous_samples_ = n;
}

}  // namespace elasticrun::worker::training
