// Strong identifiers: a worker is not a host, a rank is not a step.
//
// Each kind of number that names something is its own type, so that two of them cannot be swapped
// at a call. They are ordered (cores keep ordered maps, so a run is the same everywhere) and
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

// One started process of the user's program, never used twice in a job: a worker that comes back
// is another worker. 0 names no worker (on the wire: the agent itself).
using WorkerId = Id<struct WorkerIdTag, std::uint32_t>;
// A host by its place in the order in which the job has met hosts; never used twice for two hosts.
using HostId = Id<struct HostIdTag, std::uint32_t>;
// Place in a world, 0 .. size-1.
using Rank = Id<struct RankTag, std::int32_t>;
// Number of a world. 0 is "no world yet". Gaps are allowed, re-use is not.
using Generation = Id<struct GenerationTag, std::uint64_t>;
// Number of a controller's reign over a job.
using Term = Id<struct TermTag, std::uint64_t>;
// Number of committed updates of the model; step 0 is the fresh model. -1 is "no state at all".
using Step = Id<struct StepTag, std::int64_t>;
// One requested change of the world.
using ChangeId = Id<struct ChangeIdTag, std::uint64_t>;

inline constexpr Step no_state{-1};
inline constexpr HostId no_host{~0u};  // it has no number yet

}  // namespace elasticrun
