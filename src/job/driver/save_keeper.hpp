// The folder of --save while a job runs (a driver): what the core decides about saves is done here,
// on a thread, because a file server may not answer.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "job/core/terms/events.hpp"
#include "job/report/sink.hpp"
#include "job/spec.hpp"
#include "launcher/executors/file_thread.hpp"
#include "save/folder.hpp"

namespace elasticrun::job::driver {

class SaveKeeper {
 public:
  using Sealed = std::function<void(SealSave::Answer)>;
  SaveKeeper(boost::asio::io_context& io, std::string job, report::Sink& sink, Sealed sealed)
      : io_(io), job_(std::move(job)), sink_(sink), sealed_(std::move(sealed)) {}

  // Takes the folder, if the job has one, tells what is in it, and notes in `saving` what the job
  // goes on from. Blocks. Errors are for the user.
  Result<void> open(JobSpec::Saving& saving);
  void seal(const SealSave& order);
  void drop(const DropSave& order);
  // The job has ended, and no worker writes any more. `finished`: the next one begins afresh. Comes
  // after what was ordered before; blocks for a few seconds at most.
  void close(bool finished);

 private:
  boost::asio::io_context& io_;
  const std::string job_;
  report::Sink& sink_;
  const Sealed sealed_;
  std::string path_;  // of the folder; empty: the state is not saved
  std::optional<save::Folder> folder_;
  std::optional<launcher::executors::FileThread> thread_;
};

}  // namespace elasticrun::job::driver
