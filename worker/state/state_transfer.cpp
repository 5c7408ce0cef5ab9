// See state_transfer.hpp.
#include "worker/state/state_transfer.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.hpp"
#include "worker/state/layout_difference.hpp"
#include "worker/state/transfer_work.hpp"

namespace elasticrun::worker::state {

namespace {

// Large enough that the fixed cost of a message does not matter, small enough to overlap hashing
// and sending.
constexpr std::size_t chunk_bytes_max = 4u << 20;
constexpr std::size_t chunk_bytes_min = 256u << 10;
// Number of messages under way in one part.
constexpr std::size_t depth_of_part = 4;

// Broadcast by the first holder. Plain numbers: all members run on one kind of machine.
struct Header {
  std::uint64_t version = 2;
  std::uint64_t layout = 0;         // of what is registered
  std::uint64_t carried_bytes = 0;  // as text
  std::uint64_t progress_hash = 0;  // of the progress and the late arrays
};

// A transfer that is not in rounds.
std::size_t message_bytes(std::size_t parts) {
  return std::max(chunk_bytes_min, chunk_bytes_max / std::max<std::size_t>(1, parts));
}

// Of a part in a round. A round costs some fifty microseconds besides its bytes, and the last of
// several receivers of a part waits for as many rounds as there are ranks before it. What lies in
// host memory needs room on the GPU for a round.
std::size_t round_bytes(std::uint64_t bytes, const std::vector<core::TransferPart>& plan) {
  constexpr std::uint64_t least = 1u << 20, room = 1u << 30;
  const std::size_t parts = std::max<std::size_t>(1, plan.size());
  const bool passed_on = !plan.empty() && plan.front().route.size() > 2;
  return std::clamp(bytes / parts / (passed_on ? 16 : 4), least, room / parts);
}

std::vector<Chunk> chunks_of(const core::TransferPart& part, std::size_t chunk_bytes) {
  std::vector<Chunk> chunks;
  for (std::uint64_t at = 0; at < part.bytes; at += chunk_bytes)
    chunks.push_back({part.offset + at, std::min<std::uint64_t>(chunk_bytes, part.bytes - at)});
  return chunks;
}

std::uint64_t hash_of(const void* data, std::size_t bytes) { return XXH3_64bits(data, bytes); }

}  // namespace

// A chunk on its way through this rank.
struct StateTransfer::InFlight {
  std::size_t part = 0;
  std::size_t index = 0;  // of the chunk in its part
  Chunk chunk;
  std::byte* data = nullptr;
  std::vector<std::byte> scratch;  // for a chunk that does not lie in one piece
  std::unique_ptr<collective::Pending> coming;
  std::unique_ptr<collective::Pending> going;

  std::array<std::span<std::byte>, 1> piece() const { return {{{data, chunk.bytes}}}; }
  std::byte* scratch_for(std::size_t bytes) {
    if (scratch.size() < bytes) scratch.resize(bytes);
    return scratch.data();
  }
};

StateTransfer::Work::Work(const StateTable& table, const std::vector<bool>& holds, bool in_rounds)
    : image(table.segments(), table.gpu()),
      gpu(table.gpu()),
      plan(core::plan_transfer(holds, table.bytes())) {
  const std::size_t most =
      in_rounds ? round_bytes(table.bytes(), plan) : message_bytes(plan.size());
  for (const core::TransferPart& part : plan) {
    chunks.push_back(chunks_of(part, most));
    hashes.emplace_back(chunks.back().size());
  }
}

std::uint64_t StateTransfer::Work::hash(std::span<const std::span<std::byte>> pieces) const {
  std::uint64_t hash = 0;
  for (const std::span<std::byte> piece : pieces) {
    if (gpu && gpu->holds(piece.data())) return not_taken;
    hash = XXH3_64bits_withSeed(piece.data(), piece.size(), hash);
  }
  return hash;
}

StateTransfer::StateTransfer(collective::Group& group, std::vector<bool> holds, StateTable& table,
                             std::atomic<std::uint64_t>* moved)
    : group_(group), holds_(std::move(holds)), table_(table), moved_(moved) {
  ER_CHECK(table_.sealed() && holds_.size() == static_cast<std::size_t>(group_.size()));
  const auto first = std::find(holds_.begin(), holds_.end(), true);
  ER_CHECK(first != holds_.end(), "a world without a holder of the state");
  lead_ = static_cast<int>(first - holds_.begin());
  receiver_ = !holds_[static_cast<std::size_t>(group_.rank())];
}

StateTransfer::~StateTransfer() = default;

// Waits for a message that is under way, if there is one, and counts its bytes.
void StateTransfer::await(std::unique_ptr<collective::Pending>& pending, std::size_t bytes) {
  if (!pending) return;
  pending->wait();
  pending.reset();
  if (moved_) *moved_ += bytes;
}

TransferResult StateTransfer::exchange(const std::string& progress, bool keep_old_state) {
  const auto start = std::chrono::steady_clock::now();
  if (std::find(holds_.begin(), holds_.end(), false) == holds_.end()) return {};
  agree(progress);
  // A broadcast to all ranks, since the lead is not a neighbour of every receiver. Holders receive
  // what they already have.
  group_.broadcast(text_.data(), text_.size(), lead_);
  make_room();
  work_ = std::make_unique<Work>(table_, holds_, group_.in_rounds());
  if (receiver_ && keep_old_state) work_->staging.allocate(table_.bytes());
  if (group_.in_rounds()) {
    move_in_rounds();
  } else if (receiver_) {
    receive_parts();
  } else {
    for (std::size_t i = 0; i < work_->plan.size(); ++i)
      if (work_->plan[i].route.front() == group_.rank()) send_part(i);
  }
  complete_ = true;
  return {table_.bytes() + text_.size(), std::chrono::steady_clock::now() - start};
}

// All ranks learn the lead's layout and whether all agree, so that no rank waits for one that has
// given up.
void StateTransfer::agree(const std::string& progress) {
  Header own{.layout = table_.layout_hash()};
  if (!receiver_) {
    table_.look();
    carried_ = {.progress = progress, .late = table_.late()};
    const std::string compared = encode(carried_);
    own.progress_hash = hash_of(compared.data(), compared.size());
    carried_.objects = table_.objects();
    text_ = encode(carried_);
    own.carried_bytes = text_.size();
  }
  Header lead = own;
  group_.broadcast(&lead, sizeof lead, lead_);

  const bool other_layout = lead.version != own.version || lead.layout != own.layout;
  const bool other_progress = !receiver_ && lead.progress_hash != own.progress_hash;
  std::array<double, 2> wrong{other_layout ? 1.0 : 0.0, other_progress ? 1.0 : 0.0};
  group_.all_reduce(wrong.data(), collective::DataType::float64, wrong.size());
  if (wrong[0] > 0)
    throw StateMismatch(layout_difference(group_, table_.layout(), lead_) +
                        "; all workers must register the same names, types and sizes in the same "
                        "order");
  if (wrong[1] > 0)
    throw StateMismatch(
        fmt::format("{} holders of the state are not at the progress of rank {}, or their state "
                    "sources list other arrays",
                    wrong[1], lead_));
  // All ranks see the same number, and all give up.
  if (const Result<void> fits = check_size(lead.carried_bytes); !fits)
    throw StateMismatch(fits.error().text);
  text_.resize(lead.carried_bytes);  // the objects may be more bytes on one holder than on another
}

// Receivers make room for the arrays of the lead's state source. All ranks learn whether all could.
void StateTransfer::make_room() {
  std::string trouble;
  if (receiver_) {
    Result<Carried> carried = decode_carried(text_);
    if (!carried) throw collective::GroupBroken(carried.error().text);
    carried_ = std::move(*carried);
    try {
      table_.make_room(carried_.late);
    } catch (const SourceFailed& error) {
      trouble = error.what();
    }
  }
  if (carried_.late.empty()) {
    if (!trouble.empty()) throw SourceFailed(trouble);
    return;
  }
  std::vector<double> failed(holds_.size());
  failed[static_cast<std::size_t>(group_.rank())] = trouble.empty() ? 0 : 1;
  group_.all_reduce(failed.data(), collective::DataType::float64, failed.size());
  if (!trouble.empty()) throw SourceFailed(trouble);
  std::vector<collective::PeerTrouble> to_blame;
  for (std::size_t rank = 0; rank < failed.size(); ++rank)
    if (failed[rank] > 0)
      to_blame.push_back({static_cast<int>(rank), false, "it could not make room for the state"});
  if (!to_blame.empty())
    throw collective::GroupBroken("a newcomer could not make room for the state", to_blame);
}

void StateTransfer::send_part(std::size_t index) {
  const core::TransferPart& part = work_->plan[index];
  const std::vector<Chunk>& chunks = work_->chunks[index];
  std::vector<std::uint64_t>& hashes = work_->hashes[index];
  const int next = part.route[1];
  const auto tag = static_cast<std::uint32_t>(index);
  std::array<InFlight, depth_of_part> slots;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    InFlight& slot = slots[i % slots.size()];
    await(slot.going, slot.chunk.bytes);
    slot.chunk = chunks[i];
    slot.data = work_->image.in_one_piece(slot.chunk.offset, slot.chunk.bytes);
    if (!slot.data) {
      slot.data = slot.scratch_for(slot.chunk.bytes);
      work_->image.copy_out(slot.chunk.offset, slot.chunk.bytes, slot.data);
    }
    slot.going = group_.post_send(next, slot.data, slot.chunk.bytes, tag);
    hashes[i] = work_->hash(slot.piece());
  }
  for (InFlight& slot : slots) await(slot.going, slot.chunk.bytes);
  verify(index);
}

std::size_t place_of(const core::TransferPart& part, int rank) {
  return static_cast<std::size_t>(std::find(part.route.begin(), part.route.end(), rank) -
                                  part.route.begin());
}

// All ranks take the chunks in one order: the first of each part, then the second of each part, and
// so on. So a rank only waits for something earlier in that order, and no ranks can wait for each
// other in a circle.
void StateTransfer::receive_parts() {
  std::vector<std::pair<std::size_t, std::size_t>> order;  // (chunk, part)
  for (std::size_t part = 0; part < work_->plan.size(); ++part)
    for (std::size_t i = 0; i < work_->chunks[part].size(); ++i) order.emplace_back(i, part);
  std::sort(order.begin(), order.end());

  const std::size_t depth = depth_of_part * work_->plan.size();
  std::vector<InFlight> slots(2 * depth);  // a chunk is passed on while the next ones come in
  for (std::size_t i = 0; i < order.size() + depth; ++i) {
    if (i >= depth && i - depth < order.size()) take(slots[(i - depth) % slots.size()]);
    if (i < order.size()) {
      InFlight& slot = slots[i % slots.size()];
      await(slot.going, slot.chunk.bytes);
      slot.part = order[i].second;
      slot.index = order[i].first;
      expect(slot);
    }
  }
  for (InFlight& slot : slots) await(slot.going, slot.chunk.bytes);
  for (std::size_t part = 0; part < work_->plan.size(); ++part) verify(part);
}

void StateTransfer::expect(InFlight& slot) {
  const core::TransferPart& part = work_->plan[slot.part];
  slot.chunk = work_->chunks[slot.part][slot.index];
  slot.data = place_of_chunk(slot);
  const int from = part.route[place_of(part, group_.rank()) - 1];
  slot.coming =
      group_.post_recv(from, slot.data, slot.chunk.bytes, static_cast<std::uint32_t>(slot.part));
}

// The address where a chunk lies or will lie on this rank: scratch memory when the chunk does not
// lie in one piece.
std::byte* StateTransfer::place_of_chunk(InFlight& slot) const {
  const Chunk& chunk = slot.chunk;
  if (std::byte* const staging = work_->staging.data()) {
    work_->staging.prepare(chunk.offset, chunk.bytes);
    return staging + chunk.offset;
  }
  std::byte* const whole = work_->image.in_one_piece(chunk.offset, chunk.bytes);
  return whole ? whole : slot.scratch_for(chunk.bytes);
}

void StateTransfer::take(InFlight& slot) {
  await(slot.coming, slot.chunk.bytes);
  const core::TransferPart& part = work_->plan[slot.part];
  const std::size_t next = place_of(part, group_.rank()) + 1;
  if (next < part.route.size())
    slot.going = group_.post_send(part.route[next], slot.data, slot.chunk.bytes,
                                  static_cast<std::uint32_t>(slot.part));
  work_->hashes[slot.part][slot.index] = work_->hash(slot.piece());
  if (slot.data == slot.scratch.data())
    work_->image.copy_in(slot.chunk.offset, slot.chunk.bytes, slot.data);
}

// Compares the hashes of what arrived with the holder's hashes, and passes the holder's on.
void StateTransfer::verify(std::size_t index) {
  const core::TransferPart& part = work_->plan[index];
  const auto tag = static_cast<std::uint32_t>(index);
  const std::vector<std::uint64_t>& own = work_->hashes[index];
  std::vector<std::uint64_t> holders(own.size());
  const std::size_t bytes = holders.size() * sizeof holders[0];
  const std::size_t place = place_of(part, group_.rank());
  if (place == part.route.size()) return;  // this rank is the source of another part, or of none
  if (place == 0) return group_.send(part.route[1], own.data(), own.size() * sizeof own[0], tag);
  group_.recv(part.route[place - 1], holders.data(), bytes, tag);
  if (place + 1 < part.route.size()) group_.send(part.route[place + 1], holders.data(), bytes, tag);
  const auto agree = [](std::uint64_t a, std::uint64_t b) {
    return a == b || a == not_taken || b == not_taken;
  };
  const auto [ours, theirs] = std::mismatch(own.begin(), own.end(), holders.begin(), agree);
  if (ours == own.end()) return;
  const std::uint64_t at =
      work_->chunks[index][static_cast<std::size_t>(ours - own.begin())].offset;
  group_.abort();
  const std::string what = fmt::format(
      "the state of rank {} arrived damaged (hash {:016x} for {:016x} at byte {}); does its "
      "program "
      "change registered state outside apply?",
      part.route.front(), *ours, *theirs, at);
  throw collective::GroupBroken(what, {{part.route.front(), false, what}});
}

Carried StateTransfer::commit() noexcept {
  if (!receiver_) return {};
  ER_CHECK(complete_);
  if (const std::byte* staged = work_->staging.data())
    work_->image.copy_in(0, table_.bytes(), staged);
  table_.restore_buffers();
  work_.reset();
  complete_ = false;
  return std::move(carried_);
}

}  // namespace elasticrun::worker::state
