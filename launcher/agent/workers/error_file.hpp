// What a worker has written about its failure, as programs do under torchrun: torch's decorator
// @record writes the exception to the file that TORCHELASTIC_ERROR_FILE names, as
// {"message": {"message": "RuntimeError: boom", "extraInfo": {...}}}
// (torch.distributed.elastic.multiprocessing.errors). Other programs may write a line of text.
#pragma once

#include <string>

#include "base/ids.hpp"

namespace elasticrun::launcher::agent::workers {

// The path of the worker's file in the agent's directory. There is no file until the worker writes
// one.
std::string error_file(const std::string& directory, WorkerId worker);

// The message in the file as one line of printable text, at most 300 bytes; empty: there is no
// file, or nothing in it. The file is the program's: a link, a pipe or more than 64 KiB is not
// read.
std::string error_in(const std::string& file);
// The same, and removes the file.
std::string take_error(const std::string& file);

}  // namespace elasticrun::launcher::agent::workers
