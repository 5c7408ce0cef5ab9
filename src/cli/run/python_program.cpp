// See python_program.hpp.
#include "cli/run/python_program.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string_view>

#include "launcher/machine/program_search.hpp"

namespace elasticrun::cli::run {
namespace {

namespace machine = launcher::machine;

bool can_be_run(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

// It says itself what runs it. Some file systems make every file executable.
bool names_interpreter(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char begin[2] = {};
  return file.read(begin, sizeof begin) && std::string_view(begin, sizeof begin) == "#!";
}

// The folders to search for an interpreter, as in PATH. What pip has installed into a virtual
// environment runs there, active or not.
std::string search_path(const std::vector<std::string>& environment) {
  std::error_code ignored;
  std::string path(machine::value_of("PATH", environment));
  const auto own = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  if (!std::filesystem::exists(own.parent_path() / "pyvenv.cfg", ignored)) return path;
  return own.string() + ':' + path;
}

}  // namespace

bool is_python(const std::vector<std::string>& program) {
  const std::string& first = program.front();
  return first == "-m" ||
         (first.ends_with(".py") &&
          (machine::is_searched(first) || !can_be_run(first) || !names_interpreter(first)));
}

Result<std::vector<std::string>> python_command(std::vector<std::string> program,
                                                const std::vector<std::string>& environment) {
  if (program == std::vector<std::string>{"-m"}) return Error{"-m needs the name of a module"};
  const std::string search = search_path(environment);
  for (const char* const name : {"python3", "python"})
    for (const std::string& path : machine::program_candidates(name, search)) {
      if (!can_be_run(path)) continue;
      program.insert(program.begin(), {path, "-u"});
      return program;
    }
  return Error{"no python3 and no python is on PATH; put the interpreter in front of the script"};
}

}  // namespace elasticrun::cli::run
