// --help: one screen in which users can find things. All deadlines share a few lines instead of
// having one each, because users rarely set them; their meanings are in the manual.
#include "cli/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "cli/flags.hpp"

namespace elasticrun::cli {

std::string version_text(std::string_view program) {
  return fmt::format("{} {}\n", program, ELASTICRUN_VERSION);
}

namespace {

constexpr std::size_t columns = 80;

std::string left_column(const Flag& flag) {
  // As in other programs' help: "-h, --help", and long spellings one below the other.
  std::vector<std::string> all = spellings(flag);
  std::ranges::stable_partition(all, [](const std::string& one) { return !one.starts_with("--"); });
  std::string text = fmt::format("{}", fmt::join(all, ", "));
  if (text.starts_with("--")) text.insert(0, "    ");
  if (!flag.value.empty()) text += fmt::format(" {}", flag.value);
  return text;
}

// One line of --help for a flag; "[500ms]" follows the text when there is a default.
std::string line_of(const Flag& flag) {
  std::string line = fmt::format("  {:<31} {}", left_column(flag), flag.help);
  if (!flag.standard.empty()) line += fmt::format(" [{}]", flag.standard);
  return line + '\n';
}

std::string deadlines_paragraph() {
  std::string text, line = " ";
  for (const Flag& flag : flags) {
    if (flag.group != Group::deadlines) continue;
    const std::string item = fmt::format(" --{} [{}]", flag.name, flag.standard);
    if (line.size() + item.size() > columns) {
      text += line + '\n';
      line = " ";
    }
    line += item;
  }
  return text + line + '\n';
}

}  // namespace

std::string help_text() {
  std::string text = fmt::format("{}\n", usage_line);
  text +=
      "Runs one training job and changes its number of workers while it runs.\n"
      "Example: elasticrun --hosts hosts.txt --max-batch 1024 ./train\n"
      "         elasticrun -n 4 train.py, or -m module, is run by python3.\n";
  std::optional<Group> group;
  for (const Flag& flag : flags) {
    const bool begins = flag.group != group;
    group = flag.group;
    if (begins) text += fmt::format("\n{}\n", group_headings[static_cast<std::size_t>(flag.group)]);
    if (flag.group != Group::deadlines)
      text += line_of(flag);
    else if (begins)
      text += deadlines_paragraph();
  }
  return text +
         "\nEvery flag is also a variable (ELASTICRUN_MAX_BATCH) and a key of --config. The\n"
         "command line wins, then the environment, then the file. See man elasticrun.\n";
}

}  // namespace elasticrun::cli
