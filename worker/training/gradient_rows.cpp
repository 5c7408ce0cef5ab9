// See gradient_reduction.hpp. Here: which tensors are reduced together, as a row, and where a row
// is on its way over the world.
#include <utility>

#include "base/hash.hpp"
#include "worker/training/gradient_reduction.hpp"

namespace elasticrun::worker::training {
namespace {

// Up to this size small tensors of all types are one row of float64: a second message would take
// longer than the bytes that this costs.
constexpr std::size_t one_row_bytes_max = 64u << 10;

}  // namespace

void Reduction::place_all() {
  const std::span<const state::Tensor> gradients = table_.gradients();
  group_ = nullptr;  // that of a step before, which decided what is gathered
  cut_.clear();
  buckets_.clear();
  rows_.clear();
  if (bucket_bytes_ > 0) {
    std::vector<core::Gradient> sizes;
    for (const state::Tensor& tensor : gradients) sizes.push_back({tensor.type, tensor.count});
    cut_ = core::cut_into_buckets(sizes, bucket_bytes_);
  }
  for (const core::Bucket& bucket : cut_) buckets_.push_back(rows_of(bucket));
  overlap_.cut(cut_, gradients.size());

  std::vector<std::pair<const state::Tensor*, std::optional<std::size_t>>> small;
  std::size_t small_bytes = 0;  // as float64
  const auto sort_in = [&](const state::Tensor& tensor, std::optional<std::size_t> gradient) {
    if (tensor.count == 0) return;
    if (!is_integer(tensor.type) && tensor.bytes() >= arithmetic_.large_bytes()) {
      rows_.push_back(row_of(tensor, gradient));
    } else {
      small.emplace_back(&tensor, gradient);
      small_bytes += tensor.count * sizeof(double);
    }
  };
  if (cut_.empty())
    for (std::size_t i = 0; i < gradients.size(); ++i) sort_in(gradients[i], i);
  for (const state::Tensor& tensor : table_.buffers()) sort_in(tensor, std::nullopt);

  Row singles{DataType::float32, DataType::float32}, doubles{DataType::float64, DataType::float64};
  doubles.extras = extras_max_ + own_extras;
  for (const auto& [tensor, gradient] : small) {
    // On the GPU only integers come here, which have no type but float64 to be summed in.
    const bool wide = small_bytes <= one_row_bytes_max ||
                      arithmetic_.summed_as(tensor->type) == DataType::float64;
    add_to(wide ? doubles : singles, *tensor, gradient);
  }
  if (singles.count > 0) rows_.push_back(std::move(singles));
  rows_.push_back(std::move(doubles));
  share_ = {.calls = 1};
  find_joints(rows_);
  for (Rows& rows : buckets_) find_joints(rows);
  for (Row& row : rows_) allocate(row);
  for (Rows& rows : buckets_)
    for (Row& row : rows) allocate(row);
}

void Reduction::find_joints(Rows& rows) {
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const Row &before = rows[i - 1], &row = rows[i];
    rows[i].follows_on = goes_from_home(before) && goes_from_home(row) &&
                         before.summed == row.summed &&
                         before.places.back().end() == row.places.front().data;
  }
}

std::uint64_t Reduction::joints() const {
  Hash hash;
  const auto add = [&](const Rows& rows) {
    for (const Row& row : rows) hash.add(row.follows_on ? 1 : 0);
  };
  for (const Rows& rows : buckets_) add(rows);
  add(rows_);
  return hash.value();
}

void Reduction::add_to(Row& row, const state::Tensor& tensor, std::optional<std::size_t> gradient) {
  if (!row.places.empty()) row.is_contiguous &= row.places.back().end() == tensor.data;
  // A float64 cannot carry an integer of 64 bits, but each half of it.
  const bool halves = tensor.type == DataType::int64;
  const Place place{tensor.data, halves ? DataType::int32 : tensor.type,
                    tensor.count * (halves ? 2 : 1), row.count * size_of(row.gathered), gradient};
  row.places.push_back(place);
  row.count += place.count;
  row.plain &= place.type == row.summed;
}

Reduction::Row Reduction::row_of(const state::Tensor& tensor, std::optional<std::size_t> gradient) {
  Row row{gpu::Arithmetic::gathered_as(tensor.type), arithmetic_.summed_as(tensor.type)};
  add_to(row, tensor, gradient);
  return row;
}

Reduction::Rows Reduction::rows_of(const core::Bucket& bucket) {
  const std::span<const state::Tensor> gradients = table_.gradients();
  Rows rows;
  if (arithmetic_.large_bytes() == 0) {
    for (const std::size_t i : bucket.gradients) rows.push_back(row_of(gradients[i], i));
  } else {
    const DataType type = arithmetic_.summed_as(bucket.type);
    rows.push_back({type, type});
    for (const std::size_t i : bucket.gradients) add_to(rows.front(), gradients[i], i);
  }
  return rows;
}

// Whether the row is in the program's memory what it is on the way over the world, and so is summed
// there.
bool Reduction::goes_from_home(const Row& row) {
  return row.extras == 0 && row.plain && row.is_contiguous;
}

// Whether the row's own memory is used: to add up several calls of compute, or to have in one piece
// what goes to others.
bool Reduction::gathers(const Row& row) const {
  if (calls() > 1) return true;
  const bool alone = group_ && group_->size() == 1;
  return !alone && !goes_from_home(row) && !goes_by_tensor(row);
}

// Whether each tensor of a row is a row to the group, which is as fast where they are large enough,
// and gathers nothing. The same on all ranks, wherever they have them.
bool Reduction::goes_by_tensor(const Row& row) const {
  constexpr std::size_t least = 32u << 10, most = 2u << 20;  // bytes: of a tensor, of the row
  const std::size_t bytes = row.count * size_of(row.summed);
  return group_ && group_->divides_freely() && row.extras == 0 && row.plain &&
         row.places.size() > 1 && bytes >= least * row.places.size() && bytes <= most;
}

// Where the extra numbers are.
std::byte* Reduction::numbers_in(const Row& row) {
  return row.memory.get() + row.count * sizeof(double);
}

void Reduction::allocate(Row& row) {
  if ((gathers(row) || row.extras > 0) && !row.memory)
    row.memory =
        arithmetic_.allocate(row.count * size_of(row.gathered) + row.extras * sizeof(double));
}

// Takes what a call of compute left, the `first` or a later one.
void Reduction::take(const Row& row, double weight, bool first) {
  const bool gathered = gathers(row);
  for (const Place& place : row.places) {
    const auto [data, is_set] =
        place.gradient ? overlap_.value_of(*place.gradient) : Overlap::Value{};
    if (!is_set) arithmetic_.clear(place.data, place.count * size_of(place.type));
    const Numbers from{data ? const_cast<void*>(data) : place.data, place.type};  // is only read
    const Numbers to = gathered ? Numbers{row.memory.get() + place.at, row.gathered} : place.own();
    if (is_integer(place.type))  // the last call's value
      arithmetic_.scale(to, from, place.count, share_.leads ? 1 : 0);
    else if (!first)
      arithmetic_.add(to, from, place.count, weight);
    else if (to.data != from.data || weight != 1)  // else it is where it belongs
      arithmetic_.scale(to, from, place.count, weight);
  }
}

// Leaves in the program's memory what the gradients are, wherever that is.
void Reduction::bring_home() {
  const std::span<const state::Tensor> gradients = table_.gradients();
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const auto& [data, is_set] = overlap_.value_of(i);
    if (!is_set)
      arithmetic_.clear(gradients[i].data, gradients[i].bytes());
    else if (data)
      arithmetic_.copy(gradients[i].data, data, gradients[i].bytes());
  }
}

// Gives the program's memory what is in the row's.
void Reduction::hand_back(const Row& row) {
  for (const Place& place : row.places)
    arithmetic_.scale(place.own(), {row.memory.get() + place.at, row.gathered}, place.count, 1);
}

void Reduction::clear(const Row& row) {
  if (gathers(row)) return arithmetic_.clear(row.memory.get(), row.count * size_of(row.gathered));
  for (const Place& place : row.places)
    arithmetic_.clear(place.data, place.count * size_of(place.type));
}

// Whether the sum is in the row's own memory.
bool Reduction::comes_back(const Row& row) const { return gathers(row) && !goes_from_home(row); }

// What to sum over the world for these rows.
void Reduction::add_sums(const Rows& rows, int ranks, Sums& sums) {
  for (const Row& row : rows) {
    if (row.count + row.extras == 0) continue;
    if (calls() == 0) clear(row);
    const bool from_home = !comes_back(row);
    if (gathers(row) && from_home) hand_back(row);
    if (ranks == 1) continue;
    if (goes_by_tensor(row))
      for (const Place& place : row.places)
        sums.push_back(
            {from_home ? place.data : row.memory.get() + place.at, row.summed, place.count});
    else if (join_rows_ && row.follows_on)
      sums.back().count += row.count;
    else
      sums.push_back({from_home ? row.places.front().data : row.memory.get(), row.summed,
                      row.count + (row.extras > 0 ? numbers_.size() : 0), row.extras > 0});
  }
}

void Reduction::hand_back(const Rows& rows) {
  for (const Row& row : rows)
    if (row.count + row.extras > 0 && comes_back(row)) hand_back(row);
}

// Sums rows over the world, all together. Afterwards the program's memory holds the sums.
void Reduction::sum(collective::Group& group, std::span<const Rows* const> parts) {
  Sums sums;
  for (const Rows* part : parts) add_sums(*part, group.size(), sums);
  group.all_reduce_each(sums);
  for (const Rows* part : parts) hand_back(*part);
}

}  // namespace elasticrun::worker::training
