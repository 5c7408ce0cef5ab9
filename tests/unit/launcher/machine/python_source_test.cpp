// The command lines of Python, as the interpreter reads them: a wrong word here would copy, or look
// for, another file than the one that runs.
#include "launcher/machine/python_source.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.hpp"

namespace elasticrun::launcher::machine {
namespace {

TEST_CASE("the file of Python that a command runs") {
  struct Case {
    const char* command;
    const char* found;
  };
  const Case cases[] = {
      {"python3 train.py -m 3", "1 train.py"},
      {"/venv/bin/python3.11 -u jobs/train.py", "2 jobs/train.py"},
      {"python -uB -W ignore -Xdev -X utf8 /a/train -c", "7 /a/train"},
      {"python3 -W error -- -odd.py", "4 -odd.py"},
      {"python3 --check-hash-based-pycs always train.py", "3 train.py"},
      {"python3 -u -m train", "3 module train/__main__.py train.py"},
      {"python3 -um package.sub.train x.py",
       "2 module package/sub/train/__main__.py package/sub/train.py"},
      {"python3 -mpackage", "1 module package/__main__.py package.py"},
      {"./train.py a", "0 ./train.py"},
      {"python3", ""},
      {"python3 -V", ""},
      {"python3 -m", ""},
      {"python3 -W", ""},
      {"python3 --", ""},
      {"python3 - train.py", ""},
      {"python3 -c pass train.py", ""},
      {"python3 -uc pass train.py", ""},
      {"python3-config train.py", ""},
      {"./pythonic train.py", ""},
      {"./train train.py", ""},
      {"", ""},
  };
  for (const Case& c : cases) {
    std::vector<std::string> command;
    for (const std::string_view word : words(c.command)) command.emplace_back(word);
    const auto source = python_source(command);
    CAPTURE(c.command);
    CHECK((source ? fmt::format("{} {}{}", source->argument, source->module ? "module " : "",
                                fmt::join(source->files, " "))
                  : "") == c.found);
  }
}

}  // namespace
}  // namespace elasticrun::launcher::machine
