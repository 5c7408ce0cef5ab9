// Strong identifiers: a worker is not a host, a rank is not a step.
//
// Each kind of identifying number has its own type, so that two of them cannot be swapped in a
// call. They are ordered (the cores keep ordered maps, so a run is the same on every machine) and
// print as plain numbers.
#pragma once

#include <compare>
#include <cstdint>

namespace elasticrun {

template <class Tag, class Rep>
struct Id {
  using rep = Rep;
  Rep value{};

  constexpr Id() = default;
  constexpr explicit Id(Rep v) : value(v) {}
  constexpr auto operator<=>(const Id&) const = default;
  constexpr Id next() const { return Id(static_cast<Rep>(value + 1)); }
};

// One started process of the user's program. A number is never used twice in a job: a worker that
// is started again is another worker. 0 means no worker (on the wire: the agent itself).
using WorkerId = Id<struct WorkerIdTag, std::uint32_t>;
// A host, numbered in the order in which the job has met hosts. Never used for two hosts.
using HostId = Id<struct HostIdTag, std::uint32_t>;
// Place in a world, 0 .. size-1.
using Rank = Id<struct RankTag, std::int32_t>;
// Number of a world. 0 means "no world yet". Gaps are allowed, re-use is not.
using Generation = Id<struct GenerationTag, std::uint64_t>;
// Number of a controller's time in charge of a job; a controller that takes over has a higher one.
using Term = Id<struct TermTag, std::uint64_t>;
// Number of committed updates of the model; step 0 is the fresh model. -1 means "no state at all".
using StepId = Id<struct StepTag, std::int64_t>;
// One requested change of the world.
using ChangeId = Id<struct ChangeIdTag, std::uint64_t>;

inline constexpr Term first_term{1};
inline constexpr StepId no_state{-1};
inline constexpr HostId no_host{~0u};  // a host that has no number yet

}  // namespace elasticrun
