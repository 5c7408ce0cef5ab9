// See claims.hpp.
#include "job/core/workers/claims.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <variant>

#include "wire/limits.hpp"

namespace elasticrun::job::workers {
namespace {

constexpr std::int64_t steps_at_once = 1'000'000;  // at the start, before any time has passed
constexpr std::int64_t step_ns_min = 100;
constexpr std::int64_t time_max = std::int64_t{366} * 24 * 3600 * 1'000'000'000;  // ns: a year
constexpr std::int64_t time_min = -1'000'000'000;  // -1 means "none"; clocks are rounded
constexpr std::int64_t batch_max = std::int64_t{1} << 40;
constexpr std::int64_t calls_max = std::int64_t{1} << 40;
constexpr std::int64_t samples_max = std::int64_t{1} << 45;  // in one message of one worker
constexpr std::int64_t numbers_max = std::int64_t{1} << 60;
constexpr std::uint64_t bytes_max = std::uint64_t{1} << 60;
constexpr std::int32_t rejected_max = 1 << 24;

// Collects the first false claim of a message.
class Claims {
 public:
  explicit Claims(const Possible& possible) : possible_(possible) {}

  Claims& number(const char* what, std::int64_t x, std::int64_t min, std::int64_t max) {
    if (words_.empty() && (x < min || x > max))
      words_ = fmt::format("{} {}, where {} to {} is possible", what, x, min, max);
    return *this;
  }
  Claims& bytes(const char* what, std::uint64_t x) {
    if (words_.empty() && x > bytes_max)
      words_ = fmt::format("{} {}, where at most {} is possible", what, x, bytes_max);
    return *this;
  }
  Claims& count(const char* what, std::int64_t x) { return number(what, x, 0, numbers_max); }
  Claims& time(const char* what, std::int64_t x) { return number(what, x, time_min, time_max); }
  Claims& step(StepId x) { return number("step", x.value, no_state.value, possible_.step.value); }
  Claims& call(std::int64_t x) { return number("call", x, 0, calls_max); }
  Claims& generation(Generation x) {
    if (words_.empty() && x > possible_.generation)
      words_ = fmt::format("world {}, where {} is the newest", x.value, possible_.generation.value);
    return *this;
  }

  Claims& of(const wire::Join&) { return *this; }
  Claims& of(const wire::Ready& m) {
    const wire::TrainSpec& train = m.train;
    return call(train.call)
        .number("samples", train.samples, 0, INT64_MAX)
        .number("epochs", train.epochs, 0, INT64_MAX)
        .number("batch", train.batch, 0, batch_max)
        .number("base batch", train.base_batch, 0, batch_max)
        .bytes("bytes of the state", train.state_bytes);
  }
  Claims& of(const wire::Publish& m) { return generation(m.generation); }
  Claims& of(const wire::Prepared& m) {
    return generation(m.generation).number("refused connections", m.rejected, 0, rejected_max);
  }
  Claims& of(const wire::PrepareFailed& m) { return generation(m.generation); }
  Claims& of(const wire::Answer& m) { return generation(m.generation).step(m.committed); }
  Claims& of(const wire::Entered& m) {
    return generation(m.generation)
        .step(m.step)
        .time("idle time", m.idle_ns)
        .time("time of the transfer", m.transfer_ns)
        .bytes("bytes of the transfer", m.transfer_bytes);
  }
  Claims& of(const wire::Committed& m) { return generation(m.generation).step(m.step); }
  Claims& of(const wire::Broken& m) { return generation(m.generation); }
  Claims& of(const wire::Saved& m) {
    constexpr auto size_max = static_cast<std::int64_t>(wire::world_size_max);
    generation(m.generation).step(m.step).call(m.call);
    count("save", m.number).count("epoch", m.epoch).count("place in the epoch", m.cursor);
    number("size of the world", m.size, 0, size_max);
    number("rank", m.rank, 0, std::max<std::int64_t>(m.size, 1) - 1);
    for (const wire::saved::File& file : m.files) bytes("bytes of a file", file.bytes);
    return time("time before the next step", m.held_ns).time("time of the save", m.took_ns);
  }
  Claims& of(const wire::Unreadable& m) { return generation(m.generation); }
  Claims& of(const wire::Sample& m) {
    generation(m.generation).step(m.step);
    number("steps", m.steps, 0, possible_.step.value);
    number("samples", m.samples, 0, samples_max).time("time of steps", m.wall_ns);
    time("time in compute", m.compute_ns).time("time in reductions", m.reduce_ns);
    time("time in this phase", m.waiting_ns).bytes("bytes of the transfer", m.transfer_bytes);
    for (const Noise& noise : m.noise) count("steps of measured noise", noise.steps);
    return *this;
  }
  Claims& of(const wire::StepSamples& m) {
    return generation(m.generation).count("epoch", m.epoch);
  }
  Claims& of(const wire::Diverged& m) { return generation(m.generation).step(m.step); }
  Claims& of(const wire::Done& m) { return call(m.call).step(m.step); }
  Claims& of(const wire::Leave& m) {
    return step(m.step).number("collectives", m.collectives, 0, calls_max);
  }

  const std::string& words() const { return words_; }

 private:
  const Possible& possible_;
  std::string words_;
};

}  // namespace

Possible possible_after(Duration elapsed, StepId from, Generation newest) {
  const std::int64_t made = std::max<std::int64_t>(elapsed.count(), 0) / step_ns_min;
  const std::int64_t begin = std::clamp<std::int64_t>(from.value, 0, numbers_max);
  return {newest, StepId(begin + steps_at_once + made)};
}

std::string false_claim(const wire::FromWorker& message, const Possible& possible) {
  Claims claims(possible);
  return std::visit([&](const auto& m) { return claims.of(m).words(); }, message);
}

}  // namespace elasticrun::job::workers
