// Which way the members of a new world get their NCCL communicator (pure).
//
// Every rank publishes an offer: its versions, and what has become of the communicator it had
// before. All read the same offers, so all choose the same way without another message. When a
// world has lost ranks and got none, the survivors shrink their old communicator, which spares the
// search of the topology; in every other case a new one is made from a unique id, which always
// works.
//
// Why not shrink in a planned change: it needs a parent without work under way, so it could only
// be done at the switch; a new communicator is formed in the background, and nobody waits for it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace elasticrun::worker::gpu {

// What the loaded NCCL can be trusted with.
struct NcclFeatures {
  bool scalable_init = false;  // several unique ids
  bool shrink = false;
  bool revoke = false;  // work under way can be stopped without losing the communicator
};

// A row of the table of versions: functions, and where they are known not to work.
struct NcclFunction {
  const char* name;
  int since;        // first version with it
  int broken_from;  // a span of versions that is not used; 0: none
  int broken_to;
  const char* source;
};
std::span<const NcclFunction> nccl_functions();
// `has`: the loaded library exports the function, too.
struct NcclSymbols {
  bool scalable_init = false, shrink = false, revoke = false;
};
NcclFeatures nccl_features(int version, const NcclSymbols& has);

// The communicator a rank had in its last world.
enum class ParentHealth : std::uint8_t {
  none,     // it had none, or had to give it up
  running,  // the last world trains
  quiet,    // aborted between two collectives: nothing was under way
  stopped,  // aborted inside one, which was stopped
};

struct NcclOffer {
  int version = 0;
  int driver = 0;
  std::string host;
  ParentHealth parent = ParentHealth::none;
  std::uint64_t parent_id = 0;  // equal on all its ranks
  int parent_rank = -1;
  int parent_size = 0;
  std::string unique_id;  // of ranks that lend one; empty: none
};
// One word of printable text.
std::string to_text(const NcclOffer& offer);
Result<NcclOffer> parse_offer(std::string_view text);

enum class NcclWay : std::uint8_t { init, scalable_init, shrink, shrink_abort };
std::string_view name_of(NcclWay way);

struct NcclPath {
  NcclWay way = NcclWay::init;
  std::vector<int> excluded;  // shrink: ranks of the parent that are gone, ascending
  std::string reason;
  std::string doubt;  // what may be the cause should it fail: hosts whose drivers differ
};

// The ranks of a world that lend a unique id.
inline constexpr int ranks_per_unique_id = 256;
bool lends_unique_id(int rank, int size, const NcclFeatures& features);

// `offers` by rank. An error names the hosts whose NCCL differs, which never works, or the rank
// that lent no unique id. Drivers may differ between hosts, mostly.
Result<NcclPath> choose_path(std::span<const NcclOffer> offers, const NcclFeatures& features);

}  // namespace elasticrun::worker::gpu
