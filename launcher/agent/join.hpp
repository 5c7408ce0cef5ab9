// The command line and the key that a user gives to an agent that joins a running job by itself.
//
// Parsed by hand and not by CLI11: the agent is copied to every host, and this is four options.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "launcher/executors/agent_start.hpp"
#include "wire/greeting.hpp"

namespace elasticrun::launcher::agent {

struct JoinOptions {
  std::string address;  // of elasticrun, numeric
  std::uint16_t port = 0;
  std::string key_file;  // empty: the key comes on standard input
  int slots = 0;         // 0: the number of GPUs, or 1 without any
  std::string name;      // empty: this host's name
};

// `arguments` lack the program's name. Errors are one line and say what to write instead.
Result<JoinOptions> parse_join(std::span<const char* const> arguments);

// Returns the first line of a file, which other users must not be able to read.
Result<std::string> read_key_file(const std::string& path);

// What elasticrun would send to an agent that it starts on this host, as far as it is known before
// the greeting.
Result<executors::AgentStart> join_start(const JoinOptions& options, std::string_view key_line,
                                         std::string_view version);

// Sets the host number, key and deadlines from the greeting. An agent that was started by
// elasticrun knows them already; one that joins learns them here.
void learn(executors::AgentStart& start, const wire::Welcome& welcome);

}  // namespace elasticrun::launcher::agent
