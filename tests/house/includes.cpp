#include "tests/house/includes.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <regex>
#include <set>

namespace elasticrun::house {
namespace {

using Names = std::vector<std::string_view>;

// A room is a folder; it may include itself and what this table lists: rooms, folders with all
// rooms in them, or single headers. launcher, rendezvous, autoscaler and worker never include each
// other: each must be testable, and replaceable, without the others.
const std::map<std::string_view, Names>& folders() {
  static const std::map<std::string_view, Names> table = {
      {"base", {}},
      {"wire/agent", {"base"}},
      {"wire/saved", {"base"}},
      {"wire", {"base", "wire/agent", "wire/saved"}},
      {"net", {"base", "wire"}},
      {"save", {"base", "wire", "net"}},
      {"autoscaler", {"base"}},
      {"launcher/hosts", {"base"}},
      {"launcher/machine", {"base", "launcher/hosts"}},
      {"launcher/executors", {"base", "wire", "net", "launcher/hosts"}},
      {"launcher/bundle", {"base", "wire", "net", "launcher/hosts", "launcher/machine"}},
      {"launcher/ssh",
       {"base", "wire", "net", "launcher/hosts", "launcher/executors", "launcher/bundle"}},
      {"launcher/srun", {"base", "wire/limits.hpp", "launcher/hosts", "launcher/executors"}},
      {"launcher/agent/link", {"base", "wire", "net", "launcher/executors", "launcher/machine"}},
      {"launcher/agent/workers", {"base", "wire", "net", "launcher/executors", "launcher/machine"}},
      {"launcher/agent", {"base", "wire", "net", "launcher"}},
      {"rendezvous", {"base", "wire"}},
      {"worker/core", {"base", "wire", "worker/collective"}},
      {"worker/collective", {"base", "net"}},
      {"worker/gpu", {"base", "worker/collective"}},
      {"worker/state", {"base", "wire", "save", "worker/core", "worker/gpu", "worker/collective"}},
      {"worker/control",
       {"base", "wire", "net", "save", "worker/core", "worker/state", "worker/gpu",
        "worker/collective"}},
      {"worker/training",
       {"base", "wire", "net", "worker/control", "worker/core", "worker/state", "worker/gpu",
        "worker/collective"}},
      {"worker/api", {"base", "wire", "net", "save", "worker"}},
      {"rendezvous/server", {"base", "wire", "net"}},
      {"job", {"base", "wire/saved/manifest.hpp", "launcher", "autoscaler"}},
      {"job/report", {"base", "wire", "autoscaler"}},
      {"job/core/terms", {"base", "wire", "launcher/hosts", "job/report"}},
      {"job/core/hosts",
       {"base", "wire", "launcher/hosts", "rendezvous", "autoscaler", "job/core/terms"}},
      {"job/core/workers", {"base", "wire", "job/core/terms"}},
      {"job/core/course",
       {"base", "wire", "save/names.hpp", "rendezvous", "autoscaler", "job/core/terms",
        "job/report", "job/spec.hpp", "job/deadlines.hpp"}},
      {"job/core", {"base", "wire", "rendezvous", "autoscaler", "job/core", "job/spec.hpp"}},
      {"job/driver", {"base", "wire", "save", "launcher", "rendezvous", "autoscaler", "job"}},
      {"simulate", {"base"}},
      // The simulator runs the decisions of the workers and nothing else of them.
      {"simulate/faults",
       {"base", "wire", "save/names.hpp", "launcher/hosts", "launcher/agent/agent_core.hpp",
        "rendezvous", "autoscaler", "job", "worker/core", "worker/collective/group.hpp",
        "simulate/queue.hpp"}},
      {"simulate/what_if", {"base", "launcher/hosts", "autoscaler", "job", "simulate/queue.hpp"}},
      {"cli", {"base", "job/deadlines.hpp"}},
      {"cli/run",
       {"base", "net", "launcher", "rendezvous", "autoscaler", "job", "cli/flags.hpp",
        "cli/suggest.hpp", "cli/text.hpp"}},
      {"cli/ctl",
       {"base", "wire/saved", "net", "save", "launcher", "autoscaler", "job", "simulate/what_if",
        "cli/suggest.hpp", "cli/text.hpp"}},
      {"main", {"cli"}},
  };
  return table;
}

struct ThirdParty {
  std::string_view prefix;  // of the header's name
  Names files;              // where it may be included, beside tests
  std::string_view why;
};

const std::vector<ThirdParty>& third_party() {
  static const std::vector<ThirdParty> table = {
      {"boost/asio", drivers(), "Asio stays in drivers: decisions must run without a network"},
      {"boost/process",
       {"launcher/executors/", "launcher/srun/executor.cpp", "launcher/ssh/child_process.cpp",
        "launcher/agent/"},
       "processes are started by executors and the agent, and for hooks"},
      {"boost/json",
       {"src/wire/*.cpp", "src/wire/described.hpp", "src/job/report/advice.cpp",
        "src/job/report/event_log.cpp", "launcher/agent/workers/error_file.cpp"},
       "messages go through the codec; only what comes from others is parsed beside it"},
      {"boost/algorithm/hex.hpp", {"worker/state/"}, "objects of the program travel as text"},
      {"boost/system/", {"src/", "launcher/", "rendezvous/", "worker/"}, ""},
      {"boost/core/", {"src/", "launcher/", "rendezvous/", "worker/"}, ""},
      {"boost/describe", {"src/", "launcher/", "rendezvous/", "worker/"}, ""},
      {"boost/mp11", {"src/", "launcher/", "rendezvous/", "worker/"}, ""},
      {"boost/pfr", {"src/wire/described.hpp"}, "each struct names its own members"},
      {"fmt/", {"src/", "launcher/", "rendezvous/", "worker/"}, ""},
      {"openssl/", {"src/net/"}, "the worker library must not need OpenSSL"},
      {"CLI/",
       {"src/cli/run/options.cpp", "src/cli/ctl/options.cpp", "worker/examples/"},
       "flags are declared in one place for each program"},
      {"gloo/", {"worker/collective/gloo_*"}, "each data plane lives in its own file"},
      {"nccl", {"worker/gpu/"}, "each data plane lives in its own file"},
      {"cuda", {"worker/gpu/"}, "each data plane lives in its own file"},
      {"libssh", {"launcher/ssh/session_state.hpp"}, "ssh is one executor among others"},
      {"sodium", {"worker/collective/peer_greeting.cpp"}, "what proves a peer stands in one file"},
      {"xxhash",
       {"worker/state/", "worker/gpu/", "launcher/bundle/content_hash.cpp", "src/save/file.cpp"},
       "hashes of state, of its files, and of what is copied to hosts"},
      {"zlib", {"worker/examples/"}, "only examples read compressed data"},
      {"minizip/", {"src/cli/ctl/array_archive.cpp"}, "only exported arrays lie in an archive"},
      {"cblas", {"worker/examples/"}, "we write no arithmetic but in examples"},
      {"openblas", {"worker/examples/"}, "we write no arithmetic but in examples"},
      {"doctest/", {}, "tests only"},
  };
  return table;
}

// Headers that a pure file does not need.
const std::set<std::string_view>& impure_headers() {
  static const std::set<std::string_view> names = {
      "atomic",       "condition_variable",
      "cstdio",       "ctime",
      "filesystem",   "fstream",
      "future",       "iostream",
      "mutex",        "semaphore",
      "shared_mutex", "stdio.h",
      "stop_token",   "thread",
      "fcntl.h",      "poll.h",
      "pthread.h",    "spawn.h",
      "unistd.h",     "time.h",
  };
  return names;
}

bool is_in(std::string_view room, std::string_view folder) {
  return room == folder || (room.starts_with(folder) && room[folder.size()] == '/');
}

// The innermost room of the table that holds this file; none if no room does.
std::optional<std::string> room_of(const std::string& path) {
  std::string folder = path;
  while (folder.find('/') != folder.npos) {
    folder.resize(folder.rfind('/'));
    if (folders().contains(folder)) return folder;
  }
  return std::nullopt;
}

// The name by which a header is included: without src/.
std::string as_included(const std::string& path) {
  if (path == "src/main.cpp" || path == "src/ctl.cpp") return "main/" + path.substr(4);
  return path.starts_with("src/") ? path.substr(4) : path;
}

std::optional<std::string> check_ours(const Source& source, const std::string& header) {
  const bool is_public = header.starts_with("elasticrun/");
  if (is_test(source.path)) return std::nullopt;
  if (is_example(source.path)) {
    if (is_public || header.find('/') == std::string::npos) return std::nullopt;
    return "an example includes only the public headers and its own files";
  }
  if (is_public_header(source.path)) {
    if (is_public) return std::nullopt;
    return "a public header includes only public ones: users do not have the others";
  }
  const auto here = room_of(as_included(source.path));
  if (!here) return "its folder is not in the table of rooms";
  const std::string& from = *here;
  if (is_public) {
    if (is_in(from, "worker")) return std::nullopt;
    return "the public headers are for workers; " + from + " talks to them through wire messages";
  }
  if (header.find('/') == std::string::npos) return "name the folder, as in \"base/ids.hpp\"";
  const auto to = room_of(header);
  if (!to) return "it is in no room of ours; other headers go in <>";
  const Names& below = folders().at(from);
  if (*to == from || std::ranges::any_of(below, [&](auto name) { return is_in(header, name); }))
    return std::nullopt;
  std::string allowed;
  for (const std::string_view name : below)
    allowed += (allowed.empty() ? "" : ", ") + std::string(name);
  return from + " may include " + (allowed.empty() ? "nothing of ours" : allowed) +
         "; facts for those above go up as event values";
}

std::optional<std::string> check_system(const Source& source, const std::string& header) {
  if (is_test(source.path)) return std::nullopt;
  const std::string_view path = source.path;
  for (const ThirdParty& library : third_party()) {
    if (!header.starts_with(library.prefix)) continue;
    if (!is_public_header(path) && matches(path, library.files)) return std::nullopt;
    return "not in this file: " +
           (library.why.empty() ? "users do not have it" : std::string(library.why));
  }
  const std::string top = header.substr(0, header.find('/'));
  const bool operating_system =
      top == "sys" || top == "linux" || top == "netinet" || top == "arpa" || top == "net";
  if (top != header && !operating_system)
    return "a library that the table does not know: add it to third_party() with a reason";
  // Reading an address from text needs no network.
  const bool impure =
      (operating_system && header != "arpa/inet.h") || impure_headers().contains(header);
  const bool exempt = is_example(path) || is_public_header(path) || matches(path, drivers());
  if (impure && !exempt)
    return "this file is pure: it decides, a driver does; a driver is named in drivers()";
  return std::nullopt;
}

const std::regex& include_line() {
  static const std::regex expression(R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"].*)re");
  return expression;
}

}  // namespace

Violations include_violations(const Source& source) {
  Violations found;
  if (!is_cpp(source.path)) return found;
  const std::vector<std::string> code = code_lines(source.text);
  for (std::size_t i = 0; i < code.size(); ++i) {
    std::smatch match;
    if (!std::regex_match(code[i], match, include_line())) continue;
    const std::string header = match[2];
    const auto wrong = match[1] == "\"" ? check_ours(source, header) : check_system(source, header);
    if (wrong) found.push_back(place(source, i) + "#include of " + header + ": " + *wrong);
  }
  return found;
}

Violations unused_headers(const std::vector<Source>& tree) {
  std::set<std::string> names;  // the paths by which headers are included
  for (const Source& source : tree) {
    if (!is_cpp(source.path)) continue;
    for (const std::string& line : code_lines(source.text)) {
      std::smatch match;
      if (!std::regex_match(line, match, include_line())) continue;
      const std::string header = match[2];
      names.insert(header);
      // Examples include their own headers without the folder.
      names.insert(source.path.substr(0, source.path.rfind('/') + 1) + header);
    }
  }
  Violations found;
  for (const Source& source : tree) {
    if (!is_header(source.path) || is_public_header(source.path)) continue;
    // Gloo's own headers include these.
    if (source.path.starts_with("worker/collective/compat/")) continue;
    const bool in_src = source.path.starts_with("src/");
    if (names.contains(source.path) || (in_src && names.contains(source.path.substr(4)))) continue;
    found.push_back(source.path + ": no file includes this header; use it or remove it");
  }
  return found;
}

}  // namespace elasticrun::house
