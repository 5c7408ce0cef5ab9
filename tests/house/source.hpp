// The tree as text, which every rule reads.
//
// Rules are functions of a file's path and text, so that each can be tested on a bad example before
// it is trusted on the tree; a rule that matches nothing would otherwise look like a clean tree. A
// script with regular expressions over raw lines would do half of it, and stumble over strings
// and comments.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace elasticrun::house {

struct Source {
  std::string path;  // from the root, with '/'
  std::string text;
};

// One sentence per violation: "path:line: what; why, what to do".
using Violations = std::vector<std::string>;

// Our files under the root, without build and dot folders, in order of path.
std::vector<Source> read_tree(const std::string& root);

// Each line with comments and the insides of string and character literals blanked, columns kept.
std::vector<std::string> code_lines(std::string_view text);
std::vector<std::string> lines(std::string_view text);

bool is_cpp(std::string_view path);  // C or C++, header or source
bool is_header(std::string_view path);
bool is_test(std::string_view path);
bool is_example(std::string_view path);
bool is_public_header(std::string_view path);
// Whether the path matches one of the patterns. `a/b/` is everything below, `a/b.*` one name with
// any ending, another `*` stands for any characters but '/', and a leading `-` excludes.
bool matches(std::string_view path, const std::vector<std::string_view>& patterns);

// Files that touch the outside world. Every other file of ours is pure: it decides, and uses no
// clock, file, socket, process or thread. A new file is pure until it is named here.
const std::vector<std::string_view>& drivers();

std::string place(const Source& source, std::size_t line);  // "path:line: "; `line` counts from 0

}  // namespace elasticrun::house
