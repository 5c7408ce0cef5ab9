// What a person says to an agent that joins a running job by itself: the command line, and the key.
//
// By hand and not by CLI11: the agent is copied to every host, and this is four options.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "launcher/executors/agent_start.hpp"
#include "wire/messages.hpp"

namespace elasticrun::launcher::agent {

struct JoinOptions {
  std::string address;  // of elasticrun, numeric
  std::uint16_t port = 0;
  std::string key_file;  // empty: the key comes on standard input
  int slots = 0;         // 0: as many as there are GPUs, else 1
  std::string name;      // empty: this host's
};

// Without the program's name. Errors are one line, with what to write instead.
Result<JoinOptions> parse_join(std::span<const char* const> arguments);

// The first line of a file that nobody else may read.
Result<std::string> read_key_file(const std::string& path);

// What elasticrun would tell an agent of this host, as far as it is known before the greeting.
Result<executors::AgentStart> join_start(const JoinOptions& options, std::string_view key_line,
                                         std::string_view version);

// Who was started by elasticrun knows its number and the deadlines; who joins learns them here.
void learn(executors::AgentStart& start, const wire::Welcome& welcome);

}  // namespace elasticrun::launcher::agent
