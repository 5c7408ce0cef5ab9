// The join key file, which lets a host join a job by itself: the job's id and join key, readable
// only by its owner. Any agent that has it can work for the job. It is removed at the job's end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "launcher/executors/agent_start.hpp"

namespace elasticrun::launcher::executors {

class JoinKey {
 public:
  // Writes the file. Replaces an older join key; fails when the file there is anything else.
  static Result<std::unique_ptr<JoinKey>> write(const std::string& path, const JobKey& key);
  ~JoinKey() { remove(); }
  JoinKey(const JoinKey&) = delete;
  JoinKey& operator=(const JoinKey&) = delete;

  // Removes the file, unless another job has put its own key there. False: the file system does not
  // answer, and the file may still be there.
  bool remove();

 private:
  JoinKey(std::string path, std::string line) : path_(std::move(path)), line_(std::move(line)) {}
  std::string path_;
  std::string line_;  // what we wrote into the file
  bool removed_ = false;
};

// What --join of an agent takes.
std::string join_place(const std::string& address, std::uint16_t port);
// The command that a user runs on a host that is to join. `addresses` are the controller's.
std::string join_command(const std::string& key_file, const std::vector<std::string>& addresses,
                         std::uint16_t port);

}  // namespace elasticrun::launcher::executors
