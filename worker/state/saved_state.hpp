// The registered state as files of a save: each member writes its part of it, and a member of a
// world that begins with a save reads all of it.
//
// Why each member reads all: the first world begins in one call after the other on each of them,
// and file systems and the caches of hosts serve the same bytes many times better than a ring of
// workers would. It is also what survives best: any member that has read it is a source for the
// others.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "wire/saved/manifest.hpp"
#include "worker/state/carried.hpp"
#include "worker/state/state.hpp"
#include "worker/state/state_image.hpp"

namespace elasticrun::worker::state {

// A row of bytes of the state.
struct Share {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};
// What the member with this rank writes; the shares of all ranks follow each other without gaps. A
// small state has fewer writers than members: the last shares are empty.
Share share_of(std::uint64_t state_bytes, int rank, int size);

// Counts bytes; null: nobody wants to know.
using Moved = std::atomic<std::uint64_t>*;

// Writes a share as the file "part-RANK". `image` begins with byte `begins` of the state. Errors
// name the file.
Result<wire::saved::File> write_part(const std::string& folder, int rank, const StateImage& image,
                                     std::uint64_t begins, Share share, Moved moved);
// The text of the file `contents`. The table has looked at its source. An error when no reader
// would take it.
Result<std::string> contents_of(const StateTable& table, const std::string& progress);

// Reads a save into the memory of a sealed table, and returns what came with it; the caller hands
// the objects to the table. After an error the memory holds anything. Throws GroupBroken when the
// GPU fails, and SourceFailed.
Result<Carried> restore(const std::string& folder, StateTable& table, Moved moved);

}  // namespace elasticrun::worker::state
