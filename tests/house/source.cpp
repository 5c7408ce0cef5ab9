#include "tests/house/source.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

namespace elasticrun::house {

namespace fs = std::filesystem;

const std::vector<std::string_view>& drivers() {
  static const std::vector<std::string_view> patterns = {
      "-launcher/agent/agent_core.*",  // the agent's decisions
      "-launcher/agent/link/dial_order.*",
      "src/main.*",
      "src/ctl.*",
      "src/net/",
      "-src/save/names.hpp",
      "src/save/",
      "src/cli/",
      "src/base/boot_clock.*",  // asks for the time
      "src/base/check.*",       // ends the process
      "src/base/file.*",        // reads a file
      "src/base/log.*",         // writes to the terminal
      "src/base/quiet_thread.*",
      "src/job/driver/",
      "src/job/report/event_log.*",
      "launcher/agent/",
      "launcher/machine/descriptors.*",
      "launcher/machine/machine.*",  // asks this machine for its devices and names
      "launcher/machine/network.*",  // and for its addresses
      "launcher/bundle/bundle.*",
      "launcher/bundle/bundle_cache.*",
      "launcher/bundle/bundle_receiver.*",
      "launcher/bundle/file_hash.*",
      "launcher/bundle/libraries.*",
      "launcher/bundle/python_files.*",
      "launcher/executors/file_thread.*",
      "launcher/executors/hook_process.*",
      "launcher/executors/join_key.*",
      "launcher/executors/local_executor.*",
      "launcher/executors/start_process.hpp",
      "launcher/srun/executor.*",
      "launcher/srun/node_watch.*",
      "launcher/ssh/answers.*",
      "launcher/ssh/await_files.hpp",
      "launcher/ssh/child_process.*",
      "launcher/ssh/commands.*",
      "launcher/ssh/control_stream.*",
      "launcher/ssh/conversation.*",
      "launcher/ssh/executor.*",
      "launcher/ssh/files.*",
      "launcher/ssh/name_lookup.*",
      "launcher/ssh/session*",
      "rendezvous/server.*",
      "worker/api/auto_plane.*",
      "worker/api/job.*",  // asks for the process id
      "worker/api/loop_api.*",
      "worker/api/stray_signals.*",
      "worker/collective/gloo_*",
      "worker/collective/compat/",
      "worker/collective/peer_connector.*",
      "worker/control/agent_channel.*",
      "worker/control/connection.*",
      "worker/control/group_builder.*",
      "worker/control/member_lock.*",
      "worker/control/saver.*",
      "worker/control/step_meter.*",
      "worker/control/world_session.*",
      "worker/gpu/communicator_cache.*",
      "worker/gpu/gpu.*",
      "worker/gpu/gpu_arithmetic.*",
      "worker/gpu/nccl_*",
      "worker/gpu/side_stream.*",
      "worker/training/program_call.*",
      "worker/training/work_queue.*",
      "worker/state/machine_kind.*",
      "worker/state/saved_state.*",
      "worker/state/state_image.*",  // asks the system for memory
      "worker/state/state_transfer.*",
      "worker/training/overlap.*",
      "worker/training/epoch_end.*",
      "worker/training/own_loop.*",
      "worker/training/steps.*",
  };
  return patterns;
}

std::vector<Source> read_tree(const std::string& root) {
  std::vector<Source> tree;
  for (auto it = fs::recursive_directory_iterator(root); it != fs::recursive_directory_iterator();
       ++it) {
    const std::string name = it->path().filename().string();
    const bool built = it.depth() == 0 && name.starts_with("build");
    if (name.starts_with(".") || built || name == "__pycache__") {
      it.disable_recursion_pending();
      continue;
    }
    if (!it->is_regular_file()) continue;
    std::ifstream in(it->path(), std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    tree.push_back({fs::relative(it->path(), root).generic_string(), text.str()});
  }
  std::sort(tree.begin(), tree.end(),
            [](const Source& a, const Source& b) { return a.path < b.path; });
  return tree;
}

std::vector<std::string> lines(std::string_view text) {
  std::vector<std::string> result;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    result.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return result;
}

namespace {

bool digit(char c) { return std::isxdigit(static_cast<unsigned char>(c)); }

// The end of the comment or literal that begins at `begin`, past its last character; `begin` itself
// when none begins there.
std::size_t end_of_blank(std::string_view text, std::size_t begin) {
  const std::string_view rest = text.substr(begin);
  const auto past = [&](std::string_view closing, std::size_t from) {
    const std::size_t at = text.find(closing, from);
    return at == std::string_view::npos ? text.size() : at + closing.size();
  };
  if (rest.starts_with("//")) return std::min(text.find('\n', begin), text.size());
  if (rest.starts_with("/*")) return past("*/", begin + 2);
  if (rest.starts_with("R\"")) {
    const std::size_t open = text.find('(', begin);
    if (open == std::string_view::npos) return text.size();
    return past(")" + std::string(text.substr(begin + 2, open - begin - 2)) + "\"", open);
  }
  const char quote = rest.front();
  // 60'000 is a number, not the start of a character literal.
  const bool separator = quote == '\'' && begin > 0 && digit(text[begin - 1]);
  if ((quote != '"' && quote != '\'') || separator) return begin;
  std::size_t at = begin + 1;
  while (at < text.size() && text[at] != quote && text[at] != '\n') at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}

}  // namespace

std::vector<std::string> code_lines(std::string_view text) {
  std::string code(text);
  for (std::size_t at = 0; at < text.size();) {
    // The path of an #include is code.
    if (text[at] == '#' && text.substr(at).starts_with("#include")) {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    const std::size_t end = end_of_blank(text, at);
    for (std::size_t i = at; i < end; ++i)
      if (code[i] != '\n') code[i] = ' ';
    at = std::max(end, at + 1);
  }
  return lines(code);
}

bool is_header(std::string_view path) { return path.ends_with(".hpp") || path.ends_with(".h"); }
bool is_cpp(std::string_view path) {
  return is_header(path) || path.ends_with(".cpp") || path.ends_with(".c");
}
bool is_test(std::string_view path) { return path.starts_with("tests/"); }
bool is_example(std::string_view path) { return path.starts_with("worker/examples/"); }
bool is_public_header(std::string_view path) { return path.starts_with("worker/include/"); }

bool matches(std::string_view path, const std::vector<std::string_view>& patterns) {
  for (std::string_view pattern : patterns) {
    const bool excludes = pattern.starts_with("-");
    if (excludes) pattern.remove_prefix(1);
    std::string expression;
    for (const char c : pattern)
      expression += c == '*' ? "[^/]*" : c == '.' ? "\\." : std::string(1, c);
    if (pattern.ends_with("/")) expression += ".*";
    if (std::regex_match(path.begin(), path.end(), std::regex(expression))) return !excludes;
  }
  return false;
}

std::string place(const Source& source, std::size_t line) {
  return source.path + ":" + std::to_string(line + 1) + ": ";
}

}  // namespace elasticrun::house
