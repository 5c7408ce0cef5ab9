// See exchange.hpp.
#include "rendezvous/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "wire/limits.hpp"

namespace elasticrun::rendezvous {
namespace {

// The most bytes that a value takes as JSON: as text with escapes, or as base64 if it is no text;
// then quotes and its rank.
std::size_t bytes_in_frame(const std::string& value) {
  constexpr std::size_t beside = 32, escape = 5;
  std::size_t bytes = beside + value.size() + value.size() / 3;
  for (const char c : value)
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ') bytes += escape;
  return bytes;
}

}  // namespace

Result<void> fits_a_frame(const Gathering& gathered) {
  constexpr std::size_t envelope = 64 * 1024;  // with the workers of one host
  std::size_t bytes = envelope;
  for (const std::string& value : gathered.values) bytes += bytes_in_frame(value);
  if (bytes <= wire::frame_bytes_max) return {};
  return Error{
      fmt::format("the addresses of {} ranks take {} bytes, more than {}: a world is too "
                  "large where each rank needs those of all",
                  gathered.values.size(), bytes, wire::frame_bytes_max)};
}

std::vector<Gathering> Exchange::publish(Rank rank, std::string value,
                                         std::vector<std::int32_t> needs) {
  const auto own = static_cast<std::size_t>(rank.value);
  if (own >= places_.size() || places_[own].known) return {};
  std::erase_if(needs, [&](std::int32_t one) {
    return one < 0 || static_cast<std::size_t>(one) >= places_.size();
  });
  std::ranges::sort(needs);
  const auto twice = std::ranges::unique(needs);
  needs.erase(twice.begin(), twice.end());

  Place& place = places_[own];
  place.known = true;
  place.value = std::move(value);
  place.needs = std::move(needs);
  ++count_;
  std::vector<Gathering> gathered;
  for (const std::int32_t one : place.needs) {
    Place& needed = places_[static_cast<std::size_t>(one)];
    if (needed.known) continue;
    needed.waiting.push_back(rank);
    ++place.missing;
  }
  if (!place.needs.empty() && place.missing == 0) gathered.push_back(gather(rank));
  for (const Rank waiting : std::exchange(place.waiting, {}))
    if (--places_[static_cast<std::size_t>(waiting.value)].missing == 0)
      gathered.push_back(gather(waiting));
  if (complete()) {
    Gathering all = gather_all();
    if (!all.to.empty()) gathered.push_back(std::move(all));
  }
  return gathered;
}

Gathering Exchange::gather(Rank rank) const {
  Gathering gathered{.to = {rank}, .ranks = places_[static_cast<std::size_t>(rank.value)].needs};
  for (const std::int32_t one : gathered.ranks)
    gathered.values.push_back(places_[static_cast<std::size_t>(one)].value);
  return gathered;
}

Gathering Exchange::gather_all() const {
  Gathering gathered;
  for (std::size_t i = 0; i < places_.size(); ++i)
    if (places_[i].needs.empty()) gathered.to.push_back(Rank(static_cast<std::int32_t>(i)));
  if (gathered.to.empty()) return gathered;
  for (const Place& place : places_) gathered.values.push_back(place.value);
  return gathered;
}

}  // namespace elasticrun::rendezvous
