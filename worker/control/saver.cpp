// See saver.hpp.
#include "worker/control/saver.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "base/quiet_thread.hpp"
#include "net/sockets.hpp"

namespace elasticrun::worker::control {
namespace {

Time now() { return std::chrono::steady_clock::now(); }

// Whoever comes first makes the folder.
Result<void> make_folder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0755) == 0 || errno == EEXIST) return {};
  return Error{fmt::format("cannot make {}: {}", folder, net::error_text(errno))};
}

}  // namespace

// This worker's part of the state as it was after a step, and the thread that writes it. It may
// outlive the Saver.
struct Saver::Copy {
  state::StagingMemory memory;
  std::uint64_t bytes = 0;  // in `memory`

  std::mutex mutex;
  MemberLock* member_lock = nullptr;  // null: nobody is there to be told
  bool busy = false;

  void tell(wire::Saved report) {
    const std::lock_guard lock(mutex);
    busy = false;
    if (member_lock)
      member_lock->update([&](core::Member& member) { member.saved(std::move(report)); });
  }
};

Saver::Saver(MemberLock& member_lock, StepMeter& meter, const state::StateTable& table)
    : member_lock_(member_lock), meter_(meter), table_(table) {}

Saver::~Saver() {
  if (!copy_) return;
  const std::lock_guard lock(copy_->mutex);
  copy_->member_lock = nullptr;
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
  const std::string& folder = order.save.folder;
  const auto report_error = [&](const std::string& error) {
    report.error = error;
    member_lock_.update([&](core::Member& member) { member.saved(std::move(report)); });
  };
  meter_.enter(StepMeter::Phase::save, begun);
  if (auto made = make_folder(folder); !made) return report_error(made.error().text);
  const state::Share share = state::share_of(table_.bytes(), order.rank.value, order.size);
  if (order.rank == Rank(0)) {
    auto contents = state::write_contents(folder, table_, encode(progress));
    if (!contents) return report_error(contents.error().text);
    report.files.push_back(std::move(*contents));
  }
  if (!order.save.stop) return write_behind(share, folder, std::move(report), begun);
  const state::StateImage image(table_.segments(), table_.gpu());
  auto part = state::write_part(folder, report.rank, image, 0, share, &meter_.transferred);
  if (!part) return report_error(part.error().text);
  report.files.push_back(std::move(*part));
  report.held_ns = report.took_ns = (now() - begun).count();
  member_lock_.update([&](core::Member& member) { member.saved(std::move(report)); });
}

void Saver::write_behind(state::Share share, const std::string& folder, wire::Saved report,
                         Time begun) {
  const auto report_error = [&](const std::string& error) {
    report.error = error;
    member_lock_.update([&](core::Member& member) { member.saved(std::move(report)); });
  };
  if (copy_) {
    const std::lock_guard lock(copy_->mutex);
    if (copy_->busy) return report_error("an earlier save still waits for the file system");
  }
  try {
    if (!copy_ || copy_->bytes < share.bytes) {
      copy_ = std::make_shared<Copy>();
      copy_->memory.allocate(share.bytes);
      copy_->bytes = share.bytes;
      copy_->member_lock = &member_lock_;
    }
  } catch (const std::bad_alloc&) {
    copy_.reset();
    return report_error(fmt::format("no memory for a copy of {} bytes of the state", share.bytes));
  }
  state::StateImage(table_.segments(), table_.gpu())
      .copy_out(share.offset, share.bytes, copy_->memory.data());
  copy_->busy = true;
  report.held_ns = (now() - begun).count();
  std::thread file_thread = start_quiet_thread(
      "er-save", [copy = copy_, share, folder, report = std::move(report), begun]() mutable {
        const std::vector<state::Segment> segments{
            {.data = copy->memory.data(), .bytes = share.bytes}};
        auto part = state::write_part(folder, report.rank, state::StateImage(segments),
                                      share.offset, share, nullptr);
        if (part)
          report.files.push_back(std::move(*part));
        else
          report.error = part.error().text;
        report.took_ns = (now() - begun).count();
        copy->tell(std::move(report));
      });
  file_thread.detach();
}

}  // namespace elasticrun::worker::control
