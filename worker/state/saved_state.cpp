// See saved_state.hpp.
#include "worker/state/saved_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "save/file.hpp"
#include "save/manifest.hpp"
#include "wire/codec.hpp"

namespace elasticrun::worker::state {

// Shares begin on pages, so that no block of the disk has two writers' bytes in it.
Share share_of(std::uint64_t state_bytes, int rank, int size) {
  constexpr std::uint64_t page = 4096;
  constexpr std::uint64_t least = 1u << 20;
  // To bring a file to the disk takes longer than the bytes of a small one.
  size =
      std::min(size, static_cast<int>(std::clamp<std::uint64_t>(state_bytes / least, 1, 1u << 20)));
  if (rank >= size) return {state_bytes, 0};
  const auto begin = [&](int i) {
    const auto part = static_cast<std::uint64_t>(i), parts = static_cast<std::uint64_t>(size);
    return i == size
               ? state_bytes
               : (state_bytes / parts * part + state_bytes % parts * part / parts) / page * page;
  };
  return {begin(rank), begin(rank + 1) - begin(rank)};
}

Result<wire::saved::File> write_part(const std::string& folder, int rank, const StateImage& image,
                                     std::uint64_t begins, Share share, Moved moved) {
  auto file = save::FileWriter::create(folder, fmt::format("part-{}", rank));
  if (!file) return file.error();
  std::vector<std::byte> scratch;  // for a block that does not lie in one piece
  for (std::uint64_t at = 0; at < share.bytes; at += save::block_bytes) {
    const auto bytes = std::min<std::uint64_t>(save::block_bytes, share.bytes - at);
    const std::uint64_t offset = share.offset - begins + at;
    const std::byte* block = image.in_one_piece(offset, bytes);
    if (!block) {
      scratch.resize(save::block_bytes);
      image.copy_out(offset, bytes, scratch.data());
      block = scratch.data();
    }
    if (auto written = file->write({block, bytes}); !written) return written.error();
    if (moved) *moved += bytes;
  }
  return file->finish();
}

Result<std::string> contents_of(const StateTable& table, const std::string& progress) {
  std::string text = encode(Carried{progress, table.late(), table.objects()}, table.layout());
  if (const auto fits = check_size(text.size()); !fits) return fits.error();
  return ok(std::move(text));
}

Result<Carried> restore(const std::string& folder, StateTable& table, Moved moved) {
  const auto manifest = save::read_manifest(folder);
  if (!manifest) return manifest.error();
  if (manifest->state_bytes != table.registered_bytes() ||
      manifest->state_layout != table.layout_hash())
    return Error{fmt::format("{} holds another program's state: {} bytes, and this one has {}",
                             folder, manifest->state_bytes, table.registered_bytes())};
  auto contents = save::read_contents(folder, *manifest);
  if (!contents) return contents.error();
  auto carried = carried_of(std::move(*contents));
  if (!carried) return Error{fmt::format("{}: {}", folder, carried.error().text)};
  table.make_room(carried->late);
  const StateImage image(table.segments(), table.gpu());
  std::uint64_t at = 0;
  for (std::size_t i = 1; i < manifest->files.size(); ++i) {
    const wire::saved::File& part = manifest->files[i];
    if (part.bytes > table.bytes() - at)
      return Error{fmt::format("{}: its parts are larger than the state", folder)};
    const auto done = save::read_file(folder, part, [&](std::span<const std::byte> block) {
      image.copy_in(at, block.size(), block.data());
      at += block.size();
      if (moved) *moved += block.size();
    });
    if (!done) return done.error();
  }
  if (at != table.bytes())
    return Error{fmt::format("{}: its parts have {} bytes of {}", folder, at, table.bytes())};
  table.restore_buffers();
  return carried;
}

}  // namespace elasticrun::worker::state
