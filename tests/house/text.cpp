#include "tests/house/text.hpp"

#include <algorithm>
#include <regex>

namespace elasticrun::house {
namespace {

constexpr std::size_t columns_max = 100;
constexpr std::size_t file_lines_max = 400;
constexpr std::size_t function_lines_max = 60;

// Counts characters, not bytes: comments may hold any UTF-8.
std::size_t columns(std::string_view line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

bool has(const std::vector<Source>& tree, const std::string& path) {
  return std::any_of(tree.begin(), tree.end(), [&](const Source& s) { return s.path == path; });
}

// A source may leave the opening comment to its header, if it begins by including that header.
bool opens_well(const Source& source, const std::vector<Source>& tree) {
  if (source.text.starts_with("//") || source.text.starts_with("/*")) return true;
  if (!source.path.ends_with(".cpp")) return false;
  const std::string stem = source.path.substr(0, source.path.size() - 4);
  if (!has(tree, stem + ".hpp")) return false;
  const std::string name = stem.substr(stem.rfind('/') + 1) + ".hpp";
  return source.text.starts_with("#include \"") &&
         source.text.substr(0, source.text.find('\n')).find(name) != std::string::npos;
}

struct Banned {
  std::regex call;
  std::string_view why;
  bool examples;  // banned in examples too
};

const std::vector<Banned>& banned() {
  static const std::vector<Banned> table = [] {
    std::vector<Banned> rows;
    const auto row = [&](const char* call, std::string_view why, bool examples) {
      rows.push_back({std::regex(std::string(R"((^|[^\w.>]))") + call), why, examples});
    };
    row(R"((std::|::)?s?rand\s*\()", "chance is a seeded generator that is passed in", true);
    row(R"((std::)?random_device)", "chance is a seeded generator that is passed in", true);
    row(R"((::)?u?sleep\s*\()", "wait for the event, with a deadline", false);
    row(R"((::)?nanosleep\s*\()", "wait for the event, with a deadline", false);
    row(R"((std::)?(this_thread::)?sleep_(for|until)\b)", "wait for the event, with a deadline",
        false);
    row(R"((std::|::)?system\s*\()", "a shell in between is a quoting bug in waiting", true);
    row(R"((::)?popen\s*\()", "a shell in between is a quoting bug in waiting", true);
    row(R"((std::|::)?(strcpy|strcat|sprintf|vsprintf|gets)\s*\()", "it can overflow", true);
    row(R"((std::|::)?(setenv|putenv)\s*\()", "not safe beside other threads", true);
    // A process may be detached, because its watchdog ends it. So may the thread of a lookup, an
    // abort or a file access: nothing can end a thread that waits for a name server, for NCCL
    // or for a file server.
    rows.push_back(
        {std::regex(
             R"((\)|\b(?!\w*process\b|(lookup|abort|file)_thread\b)\w+)(\.|->)detach\s*\(\s*\))"),
         "every thread has an owner", true});
    return rows;
  }();
  return table;
}

const std::regex& clock_read() {
  static const std::regex expression(R"(_clock::now\b|\bclock_gettime\s*\(|\bgettimeofday\s*\()"
                                     R"(|\btime\s*\(\s*(nullptr|NULL|0)\s*\))");
  return expression;
}

}  // namespace

Violations text_violations(const Source& source, const std::vector<Source>& tree) {
  Violations found;
  if (!is_cpp(source.path)) return found;
  // The repetitions keep this line from matching itself.
  static const std::regex note(R"(\b(TO{1}DO|FI{1}XME|X{3})\b)");
  if (source.text.empty()) return {place(source, 0) + "an empty file"};
  const std::vector<std::string> text = lines(source.text);
  const auto at = [&](std::size_t line, std::string what) {
    found.push_back(place(source, line) + std::move(what));
  };
  if (!opens_well(source, tree))
    at(0, "begins without a comment that says what the file is for, and why so");
  if (text.size() > file_lines_max)
    at(text.size() - 1, "more than 400 lines: look for the second idea in it");
  if (!source.text.ends_with("\n")) at(text.size() - 1, "no newline at the end");
  for (std::size_t i = 0; i < text.size(); ++i) {
    // An expected text cannot be broken.
    const bool golden = is_test(source.path) && text[i].find("R\"") != std::string::npos;
    if (columns(text[i]) > columns_max && !golden) at(i, "more than 100 columns");
    if (text[i].find('\t') != std::string::npos) at(i, "a tab; scripts/format");
    if (text[i].ends_with(" ") || text[i].ends_with("\r")) at(i, "blanks at the end of the line");
    if (std::regex_search(text[i], note)) at(i, "a note to oneself: do it, or file it");
  }
  const bool guarded =
      source.text.find("#pragma once\n") != std::string::npos ||
      (source.path.ends_with(".h") && source.text.find("#ifndef ELASTICRUN_") != std::string::npos);
  if (is_header(source.path) && !guarded) at(0, "a header without #pragma once");
  return found;
}

Violations call_violations(const Source& source) {
  Violations found;
  if (!is_cpp(source.path) || is_test(source.path)) return found;
  const bool example = is_example(source.path);
  const bool clock_allowed = example || matches(source.path, drivers());
  const std::vector<std::string> code = code_lines(source.text);
  for (std::size_t i = 0; i < code.size(); ++i) {
    for (const Banned& rule : banned())
      if ((rule.examples || !example) && std::regex_search(code[i], rule.call))
        found.push_back(place(source, i) + "a banned call: " + std::string(rule.why));
    if (!clock_allowed && std::regex_search(code[i], clock_read()))
      found.push_back(place(source, i) +
                      "reads a clock: in a pure file time comes in as a parameter");
  }
  return found;
}

Violations function_violations(const Source& source) {
  Violations found;
  if (!is_cpp(source.path) || is_test(source.path)) return found;
  // Scopes that may be long: those that hold functions, and tables of values.
  static const std::regex scope(R"(\b(namespace|extern|class|struct|union|enum)\b[^()]*$|=\s*$)");
  const std::vector<std::string> code = code_lines(source.text);
  std::vector<bool> transparent;  // per open brace: it holds functions, rather than being one
  std::size_t body_depth = 0, body_line = 0;
  std::string head;
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (code[i].starts_with("#")) continue;
    for (const char c : code[i] + " ") {
      if (c == '{') {
        const bool holds = body_depth == 0 && std::regex_search(head, scope);
        transparent.push_back(holds);
        if (!holds && body_depth++ == 0) body_line = i;
      } else if (c == '}' && !transparent.empty()) {
        if (!transparent.back() && --body_depth == 0 && i - body_line > function_lines_max + 1)
          found.push_back(place(source, body_line) + "a function of " +
                          std::to_string(i - body_line - 1) + " lines; a screen holds 60");
        transparent.pop_back();
      }
      if (c == ';' || c == '{' || c == '}')
        head.clear();
      else
        head += c;
    }
  }
  return found;
}

}  // namespace elasticrun::house
