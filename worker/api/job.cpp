// See job.hpp.
#include "worker/api/job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "worker/api/connect.hpp"
#include "worker/core/shares.hpp"

namespace elasticrun::worker::api {

namespace {

constexpr std::size_t options_bytes_max = 4096;

}  // namespace

void set_error(elasticrun_job* job, const char* text) noexcept {
  try {
    job->error = text;
  } catch (...) {
    job->error.clear();
  }
}

elasticrun_status fail_unexpectedly(elasticrun_job* job, const char* text) noexcept {
  set_error(job, text);
  job->failed = true;
  if (!job->session || job->owner != ::getpid()) return ELASTICRUN_FAILED;
  try {
    job->member_lock.update([](core::Member& member) { member.fail("it has failed"); });
  } catch (...) {  // without memory it sends nothing more, either
  }
  return ELASTICRUN_FAILED;
}

[[noreturn]] void misuse(const std::string& text) { throw control::Stop(ELASTICRUN_MISUSE, text); }

void check_usable(const elasticrun_job& job, const char* what) {
  if (!job.channel)
    throw control::Stop(ELASTICRUN_FAILED, fmt::format("{}: the job could not be opened", what));
  if (job.owner != ::getpid())
    misuse(fmt::format("{}: the job belongs to process {}; a forked child cannot use it", what,
                       job.owner));
  if (job.busy)
    misuse(fmt::format("{}: called inside compute, apply or on_epoch; call it outside", what));
}

void check_reach(const elasticrun_job& job, const void* data, const char* what) {
  if (!job.gpu && gpu::Gpu::holding(data, own_host()))
    misuse(
        fmt::format("{}: the memory lies on a GPU; register what lies there before start, or "
                    "use --backend nccl",
                    what));
}

void check_state(const elasticrun_job& job, const char* what) {
  if (!job.table.has('s') && !job.table.has_source())
    misuse(fmt::format(
        "{}: no state is registered, so a newcomer would begin with its own weights; call state "
        "for what apply changes, or state(\"none\", nullptr, 0) where that is nothing",
        what));
  if (job.table.sealed()) return;
  if (const auto apart = job.table.check_overlaps(); !apart)
    misuse(fmt::format("{}: {}", what, apart.error().text));
}

void check_gradients(const elasticrun_job& job, const char* what) {
  if (!job.table.has('g') && !job.table.has('b'))
    misuse(fmt::format(
        "{}: no gradients are registered, so nothing of compute would reach the others; "
        "call gradients for what compute leaves, with 0 elements where that is sums "
        "alone (step.sum)",
        what));
}

bool in_training(const elasticrun_job& job) {
  return job.entered || job.stepping || (job.loop && !job.loop->finished());
}

elasticrun_train_options checked(const elasticrun_train_options* given, const char* what,
                                 std::int64_t least_samples) {
  if (!given) misuse(fmt::format("{}: no options (null)", what));
  // A program that was built with an older interface has fewer fields, and one with a newer one
  // has more, which must be 0 to mean nothing.
  constexpr std::size_t first = offsetof(elasticrun_train_options, batch);
  constexpr std::size_t ours = sizeof(elasticrun_train_options);
  const std::size_t size = given->struct_size;
  if (size < first || size > options_bytes_max)
    misuse(fmt::format("{}: struct_size is {}; set it to sizeof(elasticrun_train_options)", what,
                       size));
  const auto* const bytes = reinterpret_cast<const char*>(given);
  if (size > ours && std::any_of(bytes + ours, bytes + size, [](char byte) { return byte != 0; }))
    misuse(fmt::format("{}: the options are of a newer version of the library than {}", what,
                       ELASTICRUN_VERSION));
  elasticrun_train_options o{};
  std::memcpy(&o, given, std::min(size, ours));
  const auto in_range = [what](const char* name, std::int64_t value, std::int64_t least) {
    if (value < least || value > core::max_global_batch)
      misuse(fmt::format("{}: {} is {}; it must be {} to 2^40", what, name, value, least));
  };
  in_range("samples", o.samples, least_samples);
  in_range("epochs", o.epochs, 1);
  in_range("batch", o.batch, 0);
  in_range("base_batch", o.base_batch, 0);
  in_range("micro_batch", o.micro_batch, 0);
  in_range("bucket_bytes", o.bucket_bytes, 0);
  if (o.epoch_steps != 0 && o.epoch_steps != 1)
    misuse(fmt::format("{}: epoch_steps is {}; it must be 0 or 1", what, o.epoch_steps));
  return o;
}

collective::DataType type_of(elasticrun_type type, const char* what) {
  switch (type) {
    case ELASTICRUN_FLOAT32:
      return collective::DataType::float32;
    case ELASTICRUN_FLOAT64:
      return collective::DataType::float64;
    case ELASTICRUN_BFLOAT16:
      return collective::DataType::bfloat16;
    case ELASTICRUN_FLOAT16:
      return collective::DataType::float16;
    case ELASTICRUN_INT32:
      return collective::DataType::int32;
    case ELASTICRUN_INT64:
      return collective::DataType::int64;
  }
  misuse(fmt::format("{}: there is no type {}", what, static_cast<int>(type)));
}

control::WorldSession& session_of(elasticrun_job& job) {
  if (!job.session) {
    job.table.seal();
    job.session.emplace(job.member_lock, *job.channel, job.meter, job.table, own_session());
    note_training();
  }
  return *job.session;
}

}  // namespace elasticrun::worker::api
