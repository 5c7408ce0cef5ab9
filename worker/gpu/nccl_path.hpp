// Chooses how the members of a new world get their NCCL communicator (pure).
//
// Every rank publishes an offer: its versions, and the state of the communicator it had before. All
// ranks read the same offers, so all choose the same way without another message. When a world has
// lost ranks and gained none, the survivors shrink their old communicator, which saves the topology
// search; in every other case a new one is made from a unique id, which always works.
//
// Why not shrink in a planned change: it needs a parent without work under way, so it could only be
// done at the switch; a new communicator is formed in the background, while the old world steps.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace elasticrun::worker::gpu {

// The functions of the loaded NCCL that exist and are known to work.
struct NcclFeatures {
  bool scalable_init = false;  // init from several unique ids
  bool shrink = false;
};

// A row of the version table: a function, and the versions in which it is known not to work.
struct NcclFunction {
  const char* name;
  int since;        // first version with the function, as 22809 for 2.28.9
  int broken_from;  // first version in which it is not used; 0: none
  int broken_to;    // last version in which it is not used
  const char* source;
};
std::span<const NcclFunction> nccl_functions();
// The features of a version. `has`: which functions the loaded library also exports.
struct NcclSymbols {
  bool scalable_init = false, shrink = false;
};
NcclFeatures nccl_features(int version, const NcclSymbols& has);

// The state of the communicator that a rank had in its last world.
enum class ParentHealth : std::uint8_t {
  none,     // the rank had none, or had to give it up
  running,  // the last world still trains
  quiet,    // aborted between two collectives: nothing was under way
};

struct NcclOffer {
  int version = 0;
  int driver = 0;
  std::string host;
  ParentHealth parent = ParentHealth::none;
  std::uint64_t parent_id = 0;  // identifies the parent; equal on all its ranks
  int parent_rank = -1;
  int parent_size = 0;
  std::string unique_id;  // the id that this rank lends, in hexadecimal; empty: none
};
// The offer as one word of printable text. Parsing returns an error for text that is no offer.
std::string to_text(const NcclOffer& offer);
Result<NcclOffer> parse_offer(std::string_view text);

enum class NcclInit : std::uint8_t { init, scalable_init, shrink };
std::string_view name_of(NcclInit init);

struct NcclPath {
  NcclInit init = NcclInit::init;
  std::vector<int> excluded;  // for shrink: ranks of the parent that are gone, ascending
  std::string reason;         // why this way was chosen
  std::string doubt;          // the likely cause if it fails: hosts whose drivers differ
};

// Whether `rank` lends a unique id: rank 0, or one rank in each ranks_per_unique_id.
inline constexpr int ranks_per_unique_id = 256;
bool lends_unique_id(int rank, int size, const NcclFeatures& features);

// `offers` by rank. An error names the hosts whose NCCL versions differ, which never works, or the
// rank that lent no unique id. Different drivers on different hosts work in most cases.
Result<NcclPath> choose_path(std::span<const NcclOffer> offers, const NcclFeatures& features);

}  // namespace elasticrun::worker::gpu
