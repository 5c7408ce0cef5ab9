// The shared libraries that a program brings along: those that its loader finds outside of the
// system's folders, which every host has of its own.
//
// The loader itself is asked, because nobody else knows what it would find (RUNPATH,
// LD_LIBRARY_PATH, its cache, the libraries' own needs). Not ldd: that is a shell script that runs
// the program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace elasticrun::launcher::bundle {

struct Library {
  std::string name;  // as it is needed, and so as it must be called where it is put
  std::string path;
};

// The loader that an ELF program names; empty for scripts and static programs. `fd` is the program.
std::string loader_of(int fd);

// The loader's list ("name => path (address)" a line) without what is the system's or no file. A
// library that is needed by its path is left out, too: it is looked for there and nowhere else.
std::vector<Library> brought_along(std::string_view list);

// Asks the loader. `cwd` is where the program is to run, `env` what it is to get.
Result<std::vector<Library>> libraries_of(const std::string& loader, const std::string& program,
                                          const std::vector<std::string>& env,
                                          const std::string& cwd);

}  // namespace elasticrun::launcher::bundle
