// --help: one screen in which users can find things. All deadlines share a few lines instead of
// having one each, because users rarely set them; their meanings are in the manual.
#include "cli/text.hpp"

#include <fmt/format.h>

#include "cli/flags.hpp"

namespace elasticrun::cli {

std::string version_text(std::string_view program) {
  return fmt::format("{} {}\n", program, ELASTICRUN_VERSION);
}

namespace {

constexpr std::size_t columns = 80;

std::string left_column(const Flag& flag) {
  std::string text = flag.other.empty() ? "    " : "";
  if (flag.other.size() == 2) text = fmt::format("{}, ", flag.other);
  if (flag.name.size() == 1) text = "";
  text += spelled(flag);
  if (flag.other.size() > 2) text = fmt::format("    {}, {}", spelled(flag), flag.other);
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
  for (const Flag& flag : flags()) {
    if (flag.group != "Deadlines") continue;
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
      "Runs one training job on many hosts and changes their number while it runs.\n"
      "Example: elasticrun --hosts hosts.txt --max-batch 1024 ./train\n";
  std::string_view group;
  for (const Flag& flag : flags()) {
    const bool begins = flag.group != group;
    group = flag.group;
    if (group == "Deadlines") {
      if (begins)
        text += "\nDeadlines (TIME is a number with ms, s, m or h)\n" + deadlines_paragraph();
      continue;
    }
    if (begins) text += fmt::format("\n{}\n", group);
    text += line_of(flag);
  }
  return text +
         "\nEvery flag is also a variable (ELASTICRUN_MAX_BATCH) and a key of --config. The\n"
         "command line wins, then the environment, then the file. See man elasticrun.\n";
}

}  // namespace elasticrun::cli
