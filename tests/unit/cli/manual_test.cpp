// The manual matches the program: its flags, deadlines, exit codes, events, variables, keys and
// functions are exactly those of the code.
//
// The pages are mdoc(7), whose macros mark what a word is (a flag, a variable), so a test can read
// them. Where the code has a table, the test compares with it; elsewhere it searches the source
// text.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "autoscaler/autoscaler.hpp"
#include "cli/ctl/options.hpp"
#include "cli/flags.hpp"
#include "job/deadlines.hpp"

using namespace elasticrun;
using namespace elasticrun::cli;
using namespace elasticrun::cli::ctl;

namespace {

using Names = std::set<std::string>;
const std::string root = ELASTICRUN_ROOT;

std::string text_of(const std::string& path) {
  std::ifstream file(root + "/" + path);
  INFO(path);
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

// The first group of every match of `pattern`.
Names found(const std::string& text, const std::string& pattern) {
  Names names;
  const std::regex regex(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at)
    names.insert((*at)[1]);
  return names;
}

// The text of all sources in a folder.
std::string sources(const std::string& folder) {
  std::string all;
  const auto path = root + "/" + folder;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
    if (entry.path().extension() == ".cpp" &&
        entry.path().string().find("/examples/") == std::string::npos)
      all += text_of(std::filesystem::relative(entry.path(), root).string());
  REQUIRE_FALSE(all.empty());
  return all;
}

// The lines between ".Sh NAME" and the next section.
std::string section(const std::string& page, const std::string& name) {
  const std::string title = "\n.Sh " + name + "\n";
  const auto begin = page.find(title);
  INFO(name);
  REQUIRE(begin != page.npos);
  const auto end = page.find("\n.Sh ", begin + 1);
  return page.substr(begin + title.size(), end - begin - title.size() + 1);
}

// The text behind ".It " of every list item.
std::vector<std::string> items(const std::string& text) {
  std::vector<std::string> lines;
  const std::regex regex("(?:^|\n)\\.It ([^\n]*)");
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at)
    lines.push_back((*at)[1]);
  return lines;
}

// The words that follow that macro in the list items.
Names marked(const std::string& text, const std::string& macro) {
  Names names;
  for (const std::string& item : items(text)) names.merge(found(item, "\\b" + macro + " ([^ ]+)"));
  return names;
}

std::string only_in(const Names& a, const Names& b) {
  std::string text;
  for (const std::string& name : a)
    if (!b.contains(name)) text += " " + name;
  return text;
}

void same(const Names& manual, const Names& code) {
  CHECK_FALSE(code.empty());
  CHECK_MESSAGE(only_in(manual, code).empty(), "only in the manual:", only_in(manual, code));
  CHECK_MESSAGE(only_in(code, manual).empty(), "not in the manual:", only_in(code, manual));
}

}  // namespace

TEST_CASE("the manual has the flags of elasticrun") {
  Names code;
  for (const Flag& flag : flags) {
    for (const std::string& one : spellings(flag)) code.insert(one.substr(1));  // mdoc adds a dash
  }
  same(marked(section(text_of("man/elasticrun.1"), "OPTIONS"), "Fl"), code);
}

TEST_CASE("the manual has the table of deadlines") {
  std::vector<std::string> expected{"Sy flag Ta Sy default Ta Sy shorter than"};
  for (const job::DeadlineRow& row : job::deadline_table) {
    expected.push_back(fmt::format("Fl -{} Ta {} Ta", row.name, row.standard));
    if (!row.shorter_than.empty()) expected.back() += fmt::format(" Fl -{}", row.shorter_than);
  }
  const std::string text = section(text_of("man/elasticrun.1"), "DEADLINES");
  CHECK(items(text) == expected);
  // The deadlines that may be 0 are listed after the table.
  Names zero;
  for (const job::DeadlineRow& row : job::deadline_table)
    if (job::may_be_zero(row.name)) zero.insert("-" + std::string(row.name));
  same(found(text.substr(text.find(".El")), "\n\\.Fl ([^ \n]+)"), zero);
}

TEST_CASE("the manual has the exit codes") {
  Names code = found(text_of("src/base/exit_code.hpp"), "inline constexpr int \\w+ = (\\d+);");
  code.erase("128");
  code.insert("128 + n");
  Names manual;
  for (const std::string& item : items(section(text_of("man/elasticrun.1"), "EXIT STATUS")))
    manual.insert(item);
  same(manual, code);
}

TEST_CASE("the manual has the events and their members") {
  const std::string code = sources("src/job");
  const std::string text = section(text_of("man/elasticrun-events.7"), "EVENTS");
  same(marked(text, "Cm"), found(code, "record\\(\"(\\w+)\""));
  // A member is written {"name", value}. Each policy names its own figures.
  for (const std::string& member : found(code, "\\{\"([a-z_]+)\",")) {
    CAPTURE(member);
    CHECK(std::regex_search(text, std::regex("\\b" + member + "\\b")));
  }
}

TEST_CASE("the manual has the environment variables") {
  const std::string code = sources("launcher") + sources("worker") + sources("src/job");
  Names names = found(code, "\\b(?:set|emplace)\\(\"([A-Z_]+)\"");
  names.merge(found(code, "getenv\\(\"([A-Z_]+)\"\\)"));
  names.merge(found(code, "\"((?:ELASTICRUN|TORCHELASTIC)_[A-Z_]*[A-Z])[\"=]"));
  names.merge(Names{"USER", "LOGNAME"});               // the code reads both in a loop
  names.merge(Names{"SLURM_JOB_ID", "PBS_NODEFILE"});  // and these, and those beside them, by name
  same(marked(section(text_of("man/elasticrun.1"), "ENVIRONMENT"), "Ev"), names);
}

TEST_CASE("the manual has the keys of a host file") {
  const std::string keys =
      *found(text_of("launcher/hosts/host_line.cpp"), "known_keys = \"([a-z ]+)\"").begin();
  same(marked(section(text_of("man/elasticrun-hosts.5"), "KEYS"), "Cm"), found(keys, "(\\w+)"));
}

TEST_CASE("the manual has the functions, errors and options of the library") {
  const std::string header = text_of("worker/include/elasticrun/elasticrun.h");
  const std::string page = text_of("man/elasticrun-worker.3");
  const Names functions = found(header, "ELASTICRUN_API[^;]*?\\b(elasticrun_\\w+)\\(");
  CHECK(functions.size() > 20);
  const std::string synopsis = section(page, "SYNOPSIS");
  same(found(synopsis, "\\.F[no] (elasticrun_\\w+)"), functions);
  for (const std::string& function : functions) {
    CAPTURE(function);
    CHECK(section(page, "DESCRIPTION").find("Fn " + function) != page.npos);
  }
  same(marked(section(page, "RETURN VALUES"), "Dv"),
       found(header, "\\b(ELASTICRUN_(?!B?FLOAT|INT)\\w+) = \\d"));
  const auto options = header.find("typedef struct elasticrun_train_options");
  Names members =
      found(header.substr(options, header.find('}', options) - options), "int64_t (\\w+);");
  same(marked(section(page, "DESCRIPTION"), "Fa"), members);
}

TEST_CASE("the manual has the member functions of Job and Step in C++") {
  const std::string header = text_of("worker/include/elasticrun/elasticrun.hpp") +
                             text_of("worker/include/elasticrun/step.hpp");
  const std::string text = section(text_of("man/elasticrun-worker.3"), "C++");
  for (const std::string name : {"Job", "Step"}) {
    const auto begin = header.find("\nclass " + name + " {");
    REQUIRE(begin != header.npos);
    const std::string members = header.substr(begin, header.find("\n private:", begin) - begin);
    const Names functions = found(members, "\n  [^ /][^(\n]* ([a-z_]+)\\(");
    CHECK(functions.size() >= 8);
    for (const std::string& function : functions)
      CHECK_MESSAGE(std::regex_search(text, std::regex("\\b" + function + "\\b")), function);
  }
}

TEST_CASE("the manual has the policies") {
  const auto known = autoscaler::Autoscaler::policies();
  same(found(text_of("man/elasticrun-policies.7"), "\n\\.It Cm ([a-z-]+)"),
       Names(known.begin(), known.end()));
}

TEST_CASE("the manual has the flags of elasticctl") {
  Names code;
  for (const char* command : {"simulate", "plan", "export"}) {
    const char* arguments[] = {"elasticctl", command, "--help"};
    const auto help = std::get<std::string>(parse_ctl(3, arguments).value());
    code.merge(found(help, "\n  (?:-h,)?--([a-z-]+)"));
  }
  code.erase("help");
  same(found(text_of("man/elasticctl.1"), "\n\\.It Fl -([a-z-]+)"), code);
}

TEST_CASE("the manual has the messages and their members") {
  const std::string code = text_of("src/wire/messages.hpp") + text_of("src/wire/greeting.hpp") +
                           text_of("src/wire/agent/messages.hpp");
  const std::string page = text_of("man/elasticrun-protocol.7");
  const std::regex described(R"(BOOST_DESCRIBE_STRUCT\((\w+), \(\),\s*\(([^)]*)\)\))");
  int messages = 0;
  for (std::sregex_iterator at(code.begin(), code.end(), described), end; at != end; ++at) {
    CAPTURE((*at)[1].str());
    const auto begin = page.find("\n.It Cm " + (*at)[1].str() + "\n");
    REQUIRE(begin != page.npos);
    const std::string entry = page.substr(begin, page.find("\n.It Cm ", begin + 1) - begin);
    for (const std::string& member : found((*at)[2], "(\\w+)"))
      CHECK_MESSAGE(std::regex_search(entry, std::regex("\\b" + member + "\\b")), member);
    ++messages;
  }
  CHECK(messages > 38);
}

TEST_CASE("each function of the C interface has a comment") {
  const std::string header = text_of("worker/include/elasticrun/elasticrun.h");
  for (const std::string& function : found(header, "[^/]\n(ELASTICRUN_API [^(]*)\\("))
    FAIL_CHECK(function);
}

TEST_CASE("manual pages fit a terminal and refer only to pages that exist") {
  for (const char* name :
       {"elasticrun.1", "elasticrun-agent.1", "elasticrun-hosts.5", "elasticrun-worker.3",
        "elasticctl.1", "elasticrun-events.7", "elasticrun-policies.7", "elasticrun-protocol.7",
        "elasticrun-states.7", "elasticrun-migration.7", "elasticrun-python.3"}) {
    CAPTURE(name);
    const std::string page = text_of(fmt::format("man/{}", name));
    const std::regex reference("\n\\.?(?:.* )?Xr (elasticrun[a-z-]*) (\\d)");
    for (std::sregex_iterator at(page.begin(), page.end(), reference), end; at != end; ++at) {
      const auto target = fmt::format("{}/man/{}.{}", root, (*at)[1].str(), (*at)[2].str());
      CHECK_MESSAGE(std::filesystem::exists(target), target);
    }
    // Literal blocks are not filled, so their lines are as wide as they are written.
    const std::regex block("\n\\.Bd -literal[^\n]*\n([^]*?)\n\\.Ed");
    for (std::sregex_iterator at(page.begin(), page.end(), block), end; at != end; ++at)
      for (const std::string& line : found((*at)[1], "([^\n]+)")) CHECK(line.size() <= 69);
  }
}
