// See saver.hpp.
#include "worker/control/saver.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/quiet_thread.hpp"
#include "net/sockets.hpp"
#include "save/file.hpp"
#include "save/manifest.hpp"

namespace elasticrun::worker::control {
namespace {

// The files of a part. `image` begins with byte `begins` of the state.
Result<std::vector<wire::saved::File>> write(const Part& part, const state::StateImage& image,
                                             std::uint64_t begins, state::Moved moved) {
  if (part.share.bytes == 0 && part.contents.empty()) return ok(std::vector<wire::saved::File>());
  // The first member makes the folder.
  if (::mkdir(part.folder.c_str(), 0755) != 0 && errno != EEXIST)
    return Error{fmt::format("cannot make {}: {}", part.folder, net::error_text(errno))};
  struct stat entry {};
  if (::lstat(part.folder.c_str(), &entry) != 0 || !S_ISDIR(entry.st_mode))
    return Error{fmt::format("{} is not a folder, but a link or a file; remove it", part.folder)};
  // Its way to the disk is waited for after that of the state, which mostly brings it along.
  std::optional<save::FileWriter> contents;
  if (!part.contents.empty()) {
    auto created = save::FileWriter::create(part.folder, save::contents_name);
    if (!created) return created.error();
    contents.emplace(std::move(*created));
    if (auto done = contents->write(std::as_bytes(std::span(part.contents))); !done)
      return done.error();
  }
  auto state = state::write_part(part.folder, part.rank, image, begins, part.share, moved);
  if (!state) return state.error();
  if (!contents) return ok(std::vector{std::move(*state)});
  auto finished = contents->finish();
  if (!finished) return finished.error();
  return ok(std::vector{std::move(*finished), std::move(*state)});
}

void add(const Result<std::vector<wire::saved::File>>& files, wire::Saved& report) {
  if (files)
    report.files = *files;
  else
    report.error = files.error().text;
}

}  // namespace

// This worker's part of the state as it was after a step, which a thread writes. It may outlive the
// Saver.
struct Saver::Copy {
  state::StagingMemory memory;
  std::uint64_t bytes = 0;  // in `memory`

  std::mutex mutex;
  MemberLock* member_lock = nullptr;  // null: nobody is there to be told
  bool busy = false;

  bool is_busy() {
    const std::lock_guard lock(mutex);
    return busy;
  }
  void leave() {
    const std::lock_guard lock(mutex);
    member_lock = nullptr;
  }
  void tell(wire::Saved report) {
    const std::lock_guard lock(mutex);
    busy = false;
    if (member_lock)
      member_lock->update([&](core::Member& member) { member.saved(std::move(report)); });
  }
};

Saver::Saver(MemberLock& member_lock, StepMeter& meter, state::StateTable& table)
    : member_lock_(member_lock), meter_(meter), table_(table) {}

Saver::~Saver() {
  if (copy_) copy_->leave();
  if (const auto earlier = earlier_.lock()) earlier->leave();
}

void Saver::save(const core::SaveOrder& order, const core::Progress& progress) {
  const Time begun = now();
  wire::Saved report{.number = order.save.number,
                     .generation = order.generation,
                     .step = StepId(progress.step),
                     .rank = order.rank.value,
                     .size = order.size,
                     .call = progress.train_call,
                     .epoch = progress.epoch,
                     .cursor = progress.cursor};
  meter_.enter(StepMeter::Phase::save, begun);
  Part part{.folder = order.save.folder, .rank = order.rank.value};
  try {
    table_.look();
    if (order.rank == Rank(0)) {
      auto contents = state::contents_of(table_, encode(progress));
      if (!contents) return report_error(std::move(report), contents.error().text);
      part.contents = std::move(*contents);
    }
  } catch (const state::SourceFailed& error) {
    return report_error(std::move(report), error.what());
  } catch (const std::bad_alloc&) {
    return report_error(std::move(report), "no memory for the contents of the save");
  }
  report.source_layout = state::hash_of(table_.late());
  part.share = state::share_of(table_.bytes(), order.rank.value, order.size);
  if (!order.waits) return write_behind(std::move(part), std::move(report), begun);
  const state::StateImage image(table_.segments(), table_.gpu());
  add(write(part, image, 0, &meter_.transferred), report);
  report.held_ns = report.took_ns = (now() - begun).count();
  member_lock_.update([&](core::Member& member) { member.saved(std::move(report)); });
}

// The save has failed, and training continues.
void Saver::report_error(wire::Saved report, std::string error) {
  report.error = std::move(error);
  member_lock_.update([&](core::Member& member) { member.saved(std::move(report)); });
}

// Makes a copy that can be written to. False: two are being written. Throws bad_alloc.
bool Saver::make_copy(std::uint64_t bytes) {
  if (copy_ && copy_->is_busy()) {
    if (!earlier_.expired()) return false;
    earlier_ = std::exchange(copy_, nullptr);
  }
  if (copy_ && copy_->bytes >= bytes) return true;
  copy_.reset();  // its memory comes first
  auto made = std::make_shared<Copy>();
  made->memory.allocate(bytes);
  made->bytes = bytes;
  made->member_lock = &member_lock_;
  copy_ = std::move(made);
  return true;
}

void Saver::write_behind(Part part, wire::Saved report, Time begun) {
  const state::Share share = part.share;
  try {
    if (!make_copy(share.bytes))
      return report_error(std::move(report), "two earlier saves still wait for the file system");
  } catch (const std::bad_alloc&) {
    return report_error(std::move(report),
                        fmt::format("no memory for a copy of {} bytes of the state", share.bytes));
  }
  state::StateImage(table_.segments(), table_.gpu())
      .copy_out(share.offset, share.bytes, copy_->memory.data());
  copy_->busy = true;
  report.held_ns = (now() - begun).count();
  try {
    std::thread file_thread = start_quiet_thread(
        "er-save", [copy = copy_, part = std::move(part), report, begun]() mutable {
          const std::vector<state::Segment> segments{
              {.data = copy->memory.data(), .bytes = part.share.bytes}};
          add(write(part, state::StateImage(segments), part.share.offset, nullptr), report);
          report.took_ns = (now() - begun).count();
          copy->tell(std::move(report));
        });
    file_thread.detach();
  } catch (const std::system_error& error) {
    report.error = "no thread to write it: " + error.code().message();
    copy_->tell(std::move(report));
  } catch (const std::bad_alloc&) {
    report.error = "no memory for a thread to write it";
    copy_->tell(std::move(report));
  }
}

}  // namespace elasticrun::worker::control
