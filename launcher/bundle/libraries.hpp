// The shared libraries that a program brings along: those that its loader finds outside the
// system's folders. Those in the system's folders are expected on every host.
//
// We ask the loader itself, because only it knows what it would find (RUNPATH, LD_LIBRARY_PATH, its
// cache, the libraries' own dependencies). Not ldd: that is a shell script that runs the program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace elasticrun::launcher::bundle {

struct Library {
  std::string name;  // as the program asks for it; the copy's file must have this name
  std::string path;
};

// The loader that an ELF program names; empty for scripts and static programs. `fd` is the open
// program file.
std::string loader_of(int fd);

// The libraries in the loader's list (lines of "name => path (address)") that are files outside the
// system's folders. A library needed by its path is left out: the loader looks only at that path.
std::vector<Library> brought_along(std::string_view list);

// Asks the loader for the libraries of `program`. `cwd` and `env` are the working directory and the
// environment in which the program will run.
Result<std::vector<Library>> libraries_of(const std::string& loader, const std::string& program,
                                          const std::vector<std::string>& env,
                                          const std::string& cwd);

}  // namespace elasticrun::launcher::bundle
