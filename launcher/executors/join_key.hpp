// What lets a host join a job by itself: a file with the job's name and join key, readable by its
// owner alone. Whoever has it can work for the job; it is gone when the job is over.
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
  // Replaces an older one, and nothing else.
  static Result<std::unique_ptr<JoinKey>> write(const std::string& path, const JobKey& key);
  ~JoinKey() { remove(); }
  JoinKey(const JoinKey&) = delete;
  JoinKey& operator=(const JoinKey&) = delete;

  // Unless another job has put its own there. False: the file system does not answer, and it may
  // still be there.
  bool remove();

 private:
  JoinKey(std::string path, std::string line) : path_(std::move(path)), line_(std::move(line)) {}
  std::string path_;
  std::string line_;  // in it
  bool removed_ = false;
};

// What a person enters on a host that is to join; the addresses are ours.
std::string join_command(const std::string& key_file, const std::vector<std::string>& addresses,
                         std::uint16_t port);

}  // namespace elasticrun::launcher::executors
