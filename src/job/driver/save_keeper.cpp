// See save_keeper.hpp.
#include "job/driver/save_keeper.hpp"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <memory>
#include <utility>

#include "job/driver/wall_clock.hpp"
#include "save/manifest.hpp"

namespace elasticrun::job::driver {
namespace {

using report::LogLevel;

constexpr Duration last_words_limit = std::chrono::seconds(10);

}  // namespace

Result<void> SaveKeeper::open(JobSpec::Saving& saving) {
  if (saving.folder.empty()) return {};
  auto opened = save::Folder::open(saving.folder, job_);
  if (!opened) return Error{"--save: " + opened.error().text};
  path_ = saving.folder;
  folder_.emplace(std::move(*opened));
  thread_.emplace(io_);
  const save::Inventory& inventory = folder_->inventory();
  if (!inventory.unlocked.empty())
    sink_.log(LogLevel::error,
              fmt::format("--save: {} cannot be locked ({}): see to it that no other job uses it",
                          path_, inventory.unlocked));
  for (const std::string& line : inventory.refused)
    sink_.log(LogLevel::error, "a save is not used: " + line);
  if (inventory.saves.empty() && !inventory.refused.empty())
    return Error{
        fmt::format("--save: no save in {} is whole; give another folder to begin afresh", path_)};
  if (inventory.finished)
    sink_.log(LogLevel::info,
              fmt::format("beginning afresh: the job whose saves are in {} has finished", path_));
  saving.found = inventory.saves;
  saving.next_number = inventory.next_number;
  if (saving.found.empty()) return {};
  const auto& [path, manifest] = saving.found.front();
  sink_.log(LogLevel::info, fmt::format("going on from {}: step {}, epoch {}, written {}", path,
                                        manifest.step, manifest.epoch, manifest.written));
  return {};
}

void SaveKeeper::seal(const SealSave& order) {
  wire::saved::Manifest manifest = order.manifest;
  manifest.version = save::format_version;
  manifest.job = job_;
  manifest.written = utc_now();
  thread_->run([path = path_, number = order.number, manifest = std::move(manifest),
                before = order.before,
                sealed = sealed_]() -> launcher::executors::FileThread::Answer {
    auto whole = save::Folder::seal(path, number, manifest, before);
    return [=] { sealed({number, whole, manifest}); };
  });
}

void SaveKeeper::drop(const DropSave& order) {
  thread_->run([path = path_, number = order.number]() -> launcher::executors::FileThread::Answer {
    save::Folder::discard(path, number);
    return [] {};
  });
}

void SaveKeeper::close(bool finished) {
  if (!folder_) return;
  const auto trouble = std::make_shared<std::string>();
  const bool done = thread_->ends_within(last_words_limit, [path = path_, finished, trouble] {
    save::Folder::discard_all(path);
    if (!finished) return;
    if (const auto marked = save::Folder::finish(path); !marked) *trouble = marked.error().text;
  });
  if (finished && (!done || !trouble->empty()))
    sink_.log(LogLevel::error,
              fmt::format("--save: {} could not be marked as finished ({}): remove it, or the same "
                          "command goes on from its newest save",
                          path_, done ? *trouble : "its file system does not answer"));
}

}  // namespace elasticrun::job::driver
