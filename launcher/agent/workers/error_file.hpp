// What a worker has written about its failure, as programs do under torchrun: torch's decorator
// @record writes the exception to the file that TORCHELASTIC_ERROR_FILE names, as
// {"message": {"message": "RuntimeError: boom", "extraInfo": {...}}}
// (torch.distributed.elastic.multiprocessing.errors). Other programs may write a line of text.
#pragma once

#include <cstdint>
#include <string>

#include "base/ids.hpp"

namespace elasticrun::launcher::agent::workers {

struct WrittenError {
  std::string text;        // empty: there is none
  std::int64_t at_ns = 0;  // when, by the host's clock, since 1970
};

// The path of the worker's file in the agent's directory. There is no file until the worker writes
// one.
std::string error_file(const std::string& directory, WorkerId worker);

// The message in the file as one line of printable text, at most 300 bytes; empty: there is no
// file, or nothing in it. The file is the program's: a link or a pipe is not read, and of more than
// 1 MiB nothing.
std::string error_in(const std::string& file);
// The same, with the time when it was written, and removes the file.
WrittenError take_error(const std::string& file);

}  // namespace elasticrun::launcher::agent::workers
